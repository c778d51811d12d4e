"""A trained agent for anybody's loop: numpy in, numpy out, and it remembers by itself."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.agent import Agent, Normalizers
from splagger.envs import AbstractMetaEnv
from splagger.experiments.grid import Point, Run
from splagger.experiments.program import compile_grid
from splagger.experiments.records import RunError, RunFolder
from splagger.sequence import Transition


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
    ):
        self.agent, self.normalizers, self.env, self.point = agent, normalizers, env, point
        self.run = run  # that it was trained in
        self._key = jr.key(seed)
        self._act, self._observe = jax.jit(_act, static_argnums=4), jax.jit(Agent.observe)
        self.reset()

    def reset(self) -> None:
        """Forgets everything: a new task begins."""
        self.memory, self._obs = self.agent.start(), None

    def act(self, obs: Any, explore: bool = False) -> Any:
        """The most likely action (or a sampled one, to `explore`): an int, or an array of floats."""
        self._obs = obs = self._checked("obs", obs)
        self._key, key = jr.split(self._key)
        action = np.asarray(
            self._act(self.agent, self.normalizers, self.memory.output, (obs, key), explore)
        )
        return int(action) if action.ndim == 0 else action

    def observe(self, action: Any, reward: Any, next_obs: Any, done: bool = False) -> None:
        """Remembers what the last `act` led to; `done` ends the task, and with it the memory."""
        if self._obs is None:
            raise RuntimeError("observe() tells what came of an action: call act() first")
        example = self.env.space.zero()
        step = Transition(
            jnp.asarray(self._obs),
            jnp.asarray(action, example.dtype).reshape(example.shape),
            jnp.float32(reward),
            jnp.asarray(self._checked("next_obs", next_obs)),
        )
        self.memory = self._observe(self.agent, self.memory, step, bool(done))

    def _checked(self, name: str, obs: Any) -> np.ndarray:
        obs = np.asarray(obs, np.float32)
        if obs.shape != (self.env.obs_size,):
            flag = " (the last number is the done flag)" if self.env.episodes > 1 else ""
            raise ValueError(
                f"{name} must have shape ({self.env.obs_size},){flag}, got {obs.shape}"
            )
        return obs


def _act(agent, normalizers, output, seen, explore):
    obs, key = seen
    noise_key, action_key = jr.split(key)
    distribution = agent.distribution(output, obs, agent.noise(noise_key), normalizers)
    return distribution.sample(action_key) if explore else distribution.mode()


def load(
    path: str | Path,
    rate: float | None = None,
    seed: int | None = None,
    env: Any = None,
    method: Any = None,
) -> Player:
    """The trained agent of a run folder: of the given rate and seed, or the best at the end of training.

    `env` and `method` are those it was trained with, where they are in no table and no module.
    """
    folder = RunFolder(path)
    run = run_of(folder, env, method)
    index = _choose(folder, run, rate, seed)
    restored = folder.restore(compile_grid(run.config, run.points).example)
    if restored is None:
        raise RunError(f"{folder.path} has no checkpoint yet")
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), restored[1])
    return Player(state.agent, state.normalizers, run.row.meta, run.points[index], run=run)


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


def _choose(folder: RunFolder, run: Run, rate: float | None, seed: int | None) -> int:
    fits = lambda p: rate in (None, p.rate) and seed in (None, p.seed)  # noqa: E731
    candidates = [i for i, p in enumerate(run.points) if fits(p)]
    if not candidates:
        raise RunError(
            f"{folder.path} has no run with rate {rate} and seed {seed}; "
            f"its rates are {list(run.rates)}, its seeds {list(run.seeds)}"
        )
    rows = folder.read_curves()
    end = max((row["update"] for row in rows), default=0)  # runs that stopped did not get there
    finals = {
        Point(*(row[f] for f in Point._fields)): row["return"]
        for row in rows
        if row["update"] == end
    }
    return max(candidates, key=lambda i: finals.get(run.points[i], -np.inf))
