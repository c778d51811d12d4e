"""A trained agent for anybody's loop: numpy in, numpy out, and it remembers by itself."""

import functools as ft
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.agent import Agent, Normalizers
from splagger.envs import AbstractMetaEnv
from splagger.experiments.grid import Number, Point, Run
from splagger.experiments.program import compile_grid
from splagger.experiments.records import RunError, RunFolder
from splagger.ppo.train import TrainState
from splagger.sequence import Transition
from splagger.tables import lookup


class Player:
    """One agent living through one task after another.

    Call `act` with what is seen, `observe` with what came of it, and `reset` where a new task begins.
    Observations are those of the meta-episode: with several episodes a task, the done flag comes last.
    """

    def __init__(
        self,
        agent: Agent,
        normalizers: Normalizers,
        env: AbstractMetaEnv,
        point: Point,
        seed: int = 0,
        run: Run | None = None,
        path: Path | None = None,
    ):
        self.agent, self.normalizers, self.env, self.point = agent, normalizers, env, point
        self.run, self.path = run, path  # that it was trained in, and where that lies
        self._key = jr.key(seed)
        self._act, self._observe = jax.jit(Agent.act, static_argnums=5), jax.jit(Agent.observe)
        self.reset()

    def reset(self) -> None:
        """Forgets everything: a new task begins."""
        self.memory, self._obs = self.agent.start(), None

    def act(self, obs: Any, explore: bool = False) -> Any:
        """The most likely action (or a sampled one, to `explore`): an int, or an array of floats."""
        self._obs = obs = self._checked("obs", obs)
        self._key, key = jr.split(self._key)
        chosen = self._act(self.agent, self.memory, obs, key, self.normalizers, explore)
        action = np.asarray(chosen.action)
        return int(action) if action.ndim == 0 else action

    def observe(self, action: Any, reward: Any, next_obs: Any, task_done: bool = False) -> None:
        """Remembers what the last `act` led to; `task_done` ends the task, and with it the memory.

        The end of an episode is not the end of a task: with several episodes a task, it is the done flag in
        `next_obs`, and the agent goes on remembering.
        """
        if self._obs is None:
            raise RuntimeError("observe() tells what came of an action: call act() first")
        example = self.env.space.zero()
        step = Transition(
            jnp.asarray(self._obs),
            jnp.asarray(action, example.dtype).reshape(example.shape),
            jnp.float32(reward),
            jnp.asarray(self._checked("next_obs", next_obs)),
        )
        self.memory = self._observe(self.agent, self.memory, step, bool(task_done))

    def _checked(self, name: str, obs: Any) -> np.ndarray:
        obs = np.asarray(obs, np.float32)
        if obs.shape != (self.env.obs_size,):
            flag = " (the last number is the done flag)" if self.env.episodes > 1 else ""
            raise ValueError(
                f"{name} must have shape ({self.env.obs_size},){flag}, got {obs.shape}"
            )
        return obs


def load(
    path: str | Path,
    rate: float | None = None,
    seed: int | None = None,
    env: Any = None,
    method: Any = None,
    **settings: Number,
) -> Player:
    """The trained agent of a run folder: of the given rate and seed, or the best at the end of training.

    Of a sweep of other numbers, `settings` may name them: entropy_weight, kl_weight, temperature. `env` and
    `method` are those it was trained with, where they are in no table and no module.
    """
    trained = _Trained(path, env, method)
    return trained.player(trained.best({"rate": rate, "seed": seed} | settings))


def load_seeds(path: str | Path) -> list[Player]:
    """The best agent, and those that differ from it by their seed alone."""
    trained = _Trained(path)
    best = trained.run.points[trained.best({})]
    alike = [best._replace(seed=seed) for seed in trained.run.seeds]
    return [trained.player(trained.run.points.index(point)) for point in alike]


class _Trained:
    """All agents of a run folder, and how they ended."""

    def __init__(self, path: str | Path, env: Any = None, method: Any = None):
        self.folder = RunFolder(path)
        self.run = run_of(self.folder, env, method)

    @ft.cached_property
    def _states(self) -> TrainState:
        restored = self.folder.restore(compile_grid(self.run.config, self.run.points).example)
        if restored is None:
            raise RunError(
                f"{self.folder.path} has no checkpoint, so there is no agent to load (published results come "
                f"without); train it by: {self.run.command()}"
            )
        return restored[1]

    def player(self, index: int) -> Player:
        state = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), self._states)
        point = self.run.points[index]
        about = {"run": self.run, "path": self.folder.path}
        return Player(state.agent, state.normalizers, self.run.row.meta, point, **about)

    def best(self, wanted: dict[str, Number | None]) -> int:
        """Which of those that have all that is `wanted` returns most at the end of training."""
        wanted = {name: value for name, value in wanted.items() if value is not None}
        for name in wanted:
            lookup(dict.fromkeys(Point._fields), name, "setting of an agent")
        fits = lambda point: all(getattr(point, k) == v for k, v in wanted.items())  # noqa: E731
        candidates = [i for i, point in enumerate(self.run.points) if fits(point)]
        if not candidates:
            given = ", ".join(f"{name} {value}" for name, value in wanted.items())
            swept = {name: {getattr(point, name) for point in self.run.points} for name in wanted}
            there = "; ".join(f"{name}: {sorted(values)}" for name, values in swept.items())
            raise RunError(f"{self.folder.path} has no agent with {given}; it has {there}")
        rows = self.folder.read_curves()
        end = max((row["update"] for row in rows), default=0)  # runs that stopped did not get there
        finals = {
            Point(*(row[f] for f in Point._fields)): row["return"]
            for row in rows
            if row["update"] == end
        }
        return max(candidates, key=lambda i: finals.get(self.run.points[i], -np.inf))


def run_of(folder: RunFolder, env: Any = None, method: Any = None) -> Run:
    """The run that a folder holds, made again from its description."""
    record = folder.read()
    given = {k: v for k, v in {"env": env, "method": method}.items() if v is not None}
    try:
        run = Run.create(**(record["arguments"] | given))
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{folder.path} describes a run that cannot be made here: {error}; an environment or method of "
            "your own can be given to splagger.load(…, env=…, method=…)"
        ) from None
    if run.describe() != record["run"]:
        raise RunError(
            f"{folder.path} was made with other definitions of {run.row.name!r} or {run.method.name!r} "
            "than those installed; use the version that its run.json names"
        )
    return run
