"""A trained agent for any loop, with NumPy inputs and outputs and its own memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from splagger.agent import Actor, Agent, Normalizers
from splagger.agents.interface import SavedInterface
from splagger.bridges import HostMetaEnv, resolve
from splagger.envs import AbstractMetaEnv
from splagger.errors import RunError, SettingError, kind_of
from splagger.memory import Transition
from splagger.methods import METHODS
from splagger.ppo.train import NOISE_STREAM
from splagger.ranges import Episodes, as_flag, check
from splagger.registry import ENVS, EnvRow
from splagger.runs.run import Point, Run
from splagger.runs.settings import check_mapping, override


class Player:
    """An agent that plays one task after another.

    Call `act` with an observation, `observe` with the outcome, and `reset` when a new task begins. Observations
    are those of the meta-episode: if a task has several episodes, the last number is the done flag.

    `env` is the environment, or a `SavedInterface` if the agent was loaded without it. Both have `obs_size`, `space`,
    `horizon` and `episodes`, and for Gymnasium environments `flatten` and `action`.
    """

    def __init__(
        self,
        agent: Agent,
        normalizers: Normalizers,
        env: AbstractMetaEnv | SavedInterface,
        point: Point,
        seed: int = 0,
        run: Run | None = None,
        path: Path | None = None,
        changes: Mapping[str, Any] | None = None,
        row: EnvRow | None = None,
        at: int | None = None,
    ):
        self.agent, self.normalizers, self.env, self.point = agent, normalizers, env, point
        self.run, self.path = run, path  # the run it was trained in, and its folder or file
        self.changes = dict(changes or {})  # what differs from the environment in training
        self.row = row or (run.row if run else None)  # of `env`, without changes of its settings
        self.at = at  # the frames of its snapshot; None for the last agent of a run
        self._key = random_key(seed)
        self._actor = jax.jit(Agent.actor)(agent)
        self._act, self._observe = jax.jit(_act, static_argnums=5), jax.jit(Actor.observe)
        self.reset()

    def __repr__(self) -> str:
        if self.run is None:
            return f"Player({self.env}, {self.point})"
        point = f"rate {self.point.rate:g}, seed {self.point.seed}"
        name = self.run.row.name if self.row is None else self.row.name
        age = "" if self.at is None else f", at {self.at:,} frames"
        return f"Player({self.run.method.name} on {name}, {point}{age}, from {self.path})"

    def reset(self) -> None:
        """Empties the memory: a new task begins."""
        self.memory, self._obs = self._actor.empty, None

    def environment(self, purpose: str) -> AbstractMetaEnv:
        """Returns the environment; raises a RunError that begins with `purpose` if the player has only its interface."""
        if isinstance(self.env, SavedInterface):
            raise RunError(f"{purpose} needs the agent's environment, but {self.env.missing}")
        return self.env

    def wrap(self, env: Any) -> Any:
        """Returns a Gymnasium environment of yours as this agent plays it, see `splagger.bridges.gym.task_episodes`.

        Its episodes are whole tasks, and its observations and actions are those of `act` and `observe`. It must have the
        spaces of `env`; `with_env` replaces that.
        """
        from splagger.bridges.gym.task_episodes import TaskEpisodes

        known = isinstance(self.env, SavedInterface) and self.env.actions is not None
        if not (known or isinstance(self.env, HostMetaEnv)):
            raise SettingError(
                "this agent was not trained on a Gymnasium environment, so it cannot play one; splagger.gymnasium_ids has "
                "ids of ours"
            )
        return TaskEpisodes(env, self.env)

    def with_env(
        self,
        /,
        episodes: int | None = None,
        env: Any = None,
        settings: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> "Player":
        """Returns the same agent in another environment than in training: does it generalize?

        - `episodes`: episodes per task; by default those of `env` if it says how many, or else as in training.
        - `env`: an environment, as for `splagger.train`; by default the one it plays in, with its earlier changes.
        - `fields`: settings of the environment, as in `agent.with_env(length=200)`; `settings` is a dictionary of more.

        Observations and actions must keep their sizes.
        """
        check_mapping("settings", settings or {}, '{"length": 200}')
        settings = {**(settings or {}), **fields}
        for name in settings.keys() & {"env", "episodes"}:  # which are changes of another kind
            raise SettingError(
                f"env.{name} is no setting here; pass {name}=… to with_env, or --{name} to evaluate, watch and inspect"
            )
        if env is None:
            self.environment("playing in another environment")
        row = self.row if env is None else resolve(env)
        if row is None:
            raise SettingError(
                "this player has no run; pass env=…, or use a player of splagger.load"
            )
        changes = self.changes if env is None else {"env": row.name} | self._episodes(env, row)
        changes = changes | settings | ({} if episodes is None else {"episodes": episodes})
        named = {f"env.{k}": v for k, v in changes.items() if k not in ("env", "episodes")}
        changed, _ = override(row, METHODS["splagger"], named)  # whose settings stay as they are
        if "episodes" in changes:
            check("episodes", changes["episodes"], Episodes)
            changed = changed.with_meta(episodes=changes["episodes"])
        before, after = (
            (found.obs_size, found.space, tuple(found.images)) for found in (self.env, changed.meta)
        )
        if after != before:
            raise SettingError(
                f"{row.name} would have {after[0]} observed numbers and actions {after[1]}, but the agent was "
                f"trained with {before[0]} and {before[1]}{self._flag_hint(changed.meta)}"
            )
        parts = self.agent, self.normalizers, changed.meta, self.point
        origin = {"run": self.run, "path": self.path, "at": self.at}
        return Player(*parts, changes=changes, row=row, **origin)

    def _episodes(self, env: Any, row: EnvRow) -> dict[str, int]:
        """Returns the number of episodes in training for an environment that does not say how many a task has."""
        says = isinstance(env, EnvRow | AbstractMetaEnv) or (isinstance(env, str) and env in ENVS)
        episodes = (self.run.row.meta if self.run else self.env).episodes
        return {} if says or row.meta.episodes > 1 or episodes == 1 else {"episodes": episodes}

    def _flag_hint(self, env: AbstractMetaEnv) -> str:
        """Says how many episodes a task must have if only one of two environments has a done flag."""
        known = self.env.episodes
        return f"; pass episodes={known}, as before" if (known > 1) != (env.episodes > 1) else ""

    def act(self, obs: Any, explore: bool = False) -> Any:
        """Returns the most likely action, or a sampled one if `explore`: an int or an array of floats."""
        self._obs = obs = self._checked("obs", obs)
        self._key, key = jr.split(self._key)
        chosen = self._act(
            self.agent, self._actor, self.memory, obs, key, explore, self.normalizers
        )
        action = np.asarray(chosen)
        return int(action) if action.ndim == 0 else action

    def observe(self, action: Any, reward: Any, next_obs: Any, task_done: bool = False) -> None:
        """Adds the outcome of the last `act` to the memory. `task_done` ends the task and empties the memory.

        `next_obs` is what the agent sees before its next action. If an episode has ended and the task has not, this is
        the first observation of the next episode, with the done flag 1, and the agent keeps its memory.
        """
        if self._obs is None:
            raise SettingError(
                "observe() takes the outcome of an action: call act() before each observe()"
            )
        step = Transition(
            jnp.asarray(self._obs),
            jnp.asarray(self._valid(action)),
            jnp.asarray(_number("reward", reward)),
            jnp.asarray(self._checked("next_obs", next_obs)),
        )
        self.memory = self._observe(self._actor, self.memory, step, as_flag("task_done", task_done))
        self._obs = None

    def _valid(self, action: Any) -> np.ndarray:
        """Returns the action as an array; raises a SettingError if the space does not have it."""
        space, example = self.env.space, self.env.space.zero()
        try:
            found = np.asarray(action)
            valid = found.shape == example.shape and bool(np.isfinite(found).all())
            if valid and space.discrete:
                sizes = getattr(space, "sizes", space.size)
                valid = bool(np.all((found == found.astype(int)) & (found >= 0) & (found < sizes)))
        except (TypeError, ValueError):
            found, valid = action, False
        if not valid:
            raise SettingError(f"action must be one of {space}, got {action!r:.80}")
        return found.astype(example.dtype)

    def _checked(self, name: str, obs: Any) -> np.ndarray:
        try:
            obs = np.asarray(obs, np.float32)
        except (TypeError, ValueError):
            raise SettingError(
                f"{name} must be {self.env.obs_size} numbers, got {type(obs).__name__}; for Gymnasium "
                "environments, agent.env.flatten(…) returns them"
            ) from None
        if not np.isfinite(obs).all():
            raise SettingError(f"{name} must be finite, got {obs}")
        if obs.shape != (self.env.obs_size,):
            flag = " (the last number is the done flag)" if self.env.episodes > 1 else ""
            way = "; agent.env.flatten(…) returns it" * hasattr(self.env, "flatten")
            raise SettingError(
                f"{name} must have shape ({self.env.obs_size},){flag}, got {obs.shape}{way}"
            )
        return obs


def random_key(seed: int) -> Key[Array, ""]:
    """Returns the key from which a player draws its random numbers.

    It is not `jr.key(seed)`, from which a loop may draw those of its environment.
    """
    return jr.fold_in(jr.key(seed), NOISE_STREAM)


def as_player(value: Any) -> Player:
    """Returns an agent; raises a SettingError for anything else, such as the path of one."""
    if isinstance(value, Player):
        return value
    hint = f"; splagger.load({str(value)!r}) returns one" if isinstance(value, str | Path) else ""
    raise SettingError(
        f"an agent that splagger.load returned is needed, got {kind_of(value)}{hint}"
    )


def _number(name: str, value: Any) -> np.float32:
    try:
        number = np.asarray(value, np.float32)
    except (TypeError, ValueError):
        raise SettingError(f"{name} must be a number, got {type(value).__name__}") from None
    if number.shape != () or not np.isfinite(number):
        raise SettingError(f"{name} must be one finite number, got {value!r:.80}")
    return np.float32(number)


def _act(agent: Agent, actor: Actor, memory, obs, key, explore: bool, normalizers: Normalizers):
    noise = agent.sample_noise(*jr.split(key))
    return actor.act(memory, obs, noise, normalizers, explore).action
