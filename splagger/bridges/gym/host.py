"""Meta-episodes of Gymnasium environments: one host callback steps the whole batch.

The state holds the task's history. Thus `reset` and `step` are pure functions like those of `MetaEnv`, and a
checkpoint of the state is a checkpoint of the environment.
"""

import atexit
import contextlib
import dataclasses
import functools as ft
import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key, Num, UInt32

from splagger.bridges.gym.checked_env import try_env
from splagger.bridges.gym.gym_env import GymEnv, as_json, layout
from splagger.bridges.gym.pool import BatchReset, BatchStep, History, Pool
from splagger.bridges.gym.workers import WorkerPool
from splagger.bridges.importing import import_path_of, label_of
from splagger.envs.meta import AbstractMetaEnv, MetaStep
from splagger.errors import SettingError

MOST_POOLS = 8  # environments with open pools in this process


class HostState(NamedTuple):
    """The state of a task: its seed, the actions so far, and a fingerprint of the resulting history."""

    seed: UInt32[Array, ""]
    actions: Num[Array, "horizon *action"]
    count: Int[Array, ""]
    fingerprint: UInt32[Array, "2"]
    obs: Float[Array, " obs"]
    episode: Int[Array, ""]


class HostMetaEnv(AbstractMetaEnv):
    """An endless sequence of tasks in a Gymnasium environment, with K episodes each.

    The done flag and the ends of episodes and tasks follow `MetaEnv`.
    """

    max_parallel: ClassVar[int] = 32  # each one is a separate Python object on the host
    env: GymEnv = eqx.field(static=True)
    episodes: int = eqx.field(static=True)

    def reset(self, key: Key[Array, ""]) -> HostState:
        seed, action = _seed(key), self.space.zero()
        out = BatchReset(*self._on_host(_reset, self._shapes(BatchReset), seed))
        actions = jnp.zeros((self.horizon, *action.shape), action.dtype)
        return HostState(seed, actions, jnp.int32(0), out.fingerprint, out.obs, jnp.int32(0))

    def sample_noise(self, key: Key[Array, ""]) -> UInt32[Array, ""]:
        """Draws the seed of the next task, which is used if this step ends the current one."""
        return _seed(key)

    def advance(self, next_seed: UInt32[Array, ""], state: HostState, action: Array):
        action = jnp.asarray(action, state.actions.dtype)
        history = History(state.seed, state.actions, state.count, state.fingerprint, state.obs)
        shapes = self._shapes(BatchStep)
        out = BatchStep(*self._on_host(_step, shapes, *history, action, next_seed))
        new = HostState(
            jnp.where(out.task_done, next_seed, state.seed),
            state.actions.at[state.count].set(action),
            jnp.where(out.task_done, 0, state.count + 1),
            out.fingerprint,
            out.obs,
            out.episode,
        )
        ends = out.terminated, out.truncated, out.episode_done, out.task_done
        return new, MetaStep(out.next_obs, out.reward, *ends)

    @property
    def notes(self) -> tuple[str, ...]:
        texts = ", ".join(layout(self.env).texts)
        note = (
            f"{self.env.name}: the agent does not see text ({texts}); if it tells tasks apart, wrap the environment "
            "so that observations contain it as numbers"
        )
        return (note,) if texts else ()

    def flatten(self, obs: Any, done: bool = False) -> np.ndarray:
        """Returns a Gymnasium observation in the agent's form; `done`: an episode of the task has just ended."""
        flat = np.asarray(layout(self.env).flatten(obs), np.float32)
        return flat if self.episodes == 1 else np.append(flat, np.float32(done))

    def action(self, action: Any) -> Any:
        """Returns an agent's action in Gymnasium's form, scaled to the bounds of the action space."""
        return layout(self.env).action(np.asarray(action))

    def to_render(self) -> "HostMetaEnv":
        """Returns the same environment, created with render_mode="rgb_array"."""
        rendered = dataclasses.replace(self.env, render=True, workers=0)
        return HostMetaEnv(env=rendered, episodes=self.episodes)

    def render(self, state: HostState):
        history = (state.seed, state.actions, state.count, state.fingerprint, state.obs)
        return pool_of(self).render(History(*map(np.asarray, history)))

    def _shapes(self, kind: Any):
        """Returns the shapes and types of `BatchReset` or `BatchStep` for one environment."""
        flag, obs = (
            jax.ShapeDtypeStruct((), bool),
            jax.ShapeDtypeStruct((self.obs_size,), jnp.float32),
        )
        known = {
            "obs": obs,
            "next_obs": obs,
            "fingerprint": jax.ShapeDtypeStruct((2,), jnp.uint32),
            "episode": jax.ShapeDtypeStruct((), jnp.int32),
            "reward": jax.ShapeDtypeStruct((), jnp.float32),
        }
        return tuple(known.get(field, flag) for field in kind._fields)

    def _on_host(self, function: Callable[..., Any], shapes, *args: Array):
        call = ft.partial(_recording_errors, function, self)
        return jax.pure_callback(call, shapes, *args, vmap_method="broadcast_all")


_pools: dict[HostMetaEnv, Pool | WorkerPool] = {}  # of this process, the oldest first


def pool_of(env: HostMetaEnv) -> Pool | WorkerPool:
    """Returns the environment's pool, which the first call creates.

    If there are many, the oldest is closed. Its environments can be made again, because histories are replayed.
    """
    if env not in _pools:
        while len(_pools) >= MOST_POOLS:
            _pools.pop(next(iter(_pools))).close()
        kind = WorkerPool if env.env.workers else Pool
        _pools[env] = kind(env.env, env.episodes, jax.local_device_count())
    return _pools[env]


@atexit.register
def close_pools() -> None:
    """Closes all environments, some of which write files only then, and all worker processes."""
    while _pools:
        _pools.popitem()[1].close()


def trial(env: AbstractMetaEnv) -> float:
    """Tries a Gymnasium environment and returns the seconds of one step; 0 for an environment in JAX.

    Raises an EnvError that names the environment and what is wrong with its first steps.
    """
    return try_env(env.env) if isinstance(env, HostMetaEnv) else 0.0


def _reset(env: HostMetaEnv, seed: np.ndarray):
    return _unflatten(pool_of(env).reset(seed.reshape(-1)), seed.shape)


def _step(env: HostMetaEnv, *columns: np.ndarray):
    """`columns` are the history's leaves, the actions and the seeds; the seeds have only batch axes."""
    batch = columns[-1].shape
    flat = [column.reshape(-1, *column.shape[len(batch) :]) for column in columns]
    return _unflatten(pool_of(env).step(History(*flat[:-2]), flat[-2], flat[-1]), batch)


def _unflatten(columns: Any, batch: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(column.reshape((*batch, *column.shape[1:])) for column in columns)


def _seed(key: Key[Array, ""]) -> UInt32[Array, ""]:
    """Draws a seed of 31 bits, because some simulators accept only signed integers."""
    return jr.bits(key, (), jnp.uint32) >> 1


_errors: list[Exception] = []


def _recording_errors(function: Callable[..., Any], env: HostMetaEnv, *args: Any):
    try:
        return function(env, *map(np.asarray, args))
    except Exception as error:
        _errors.append(error)
        raise


@contextlib.contextmanager
def unwrapped_errors():
    """Raises the error of an environment itself, instead of the JAX error that wraps it.

    JAX also logs the traceback of every callback error. Inside this context, errors of our environments are not
    logged, because they are raised.
    """
    _errors.clear()
    logger = logging.getLogger("jax._src.callback")
    logger.addFilter(_is_not_ours)
    try:
        yield
    except Exception as error:
        if _errors and error is not _errors[0]:
            raise _errors[0] from None
        raise
    finally:
        logger.removeFilter(_is_not_ours)


def _is_not_ours(record: logging.LogRecord) -> bool:
    return not (record.exc_info and record.exc_info[1] in _errors)


def from_gymnasium(
    make_env: Any,
    task: str | Callable[..., Any] = "auto",
    episodes: int = 1,
    max_steps: int | None = None,
    workers: int = 0,
    name: str = "",
    kwargs: str | Mapping[str, Any] | None = None,
) -> HostMetaEnv:
    """Returns a Gymnasium environment for `splagger.train`.

    - `make_env`: an id, a function that creates the environment, or the function's import path.
    - `task`: how tasks are sampled (docs/bring-your-own.md).
    - `episodes`, `max_steps`: episodes per task, and the largest number of steps per episode.
    - `workers`: the number of processes that step the environments; 0 steps them in this process.
    - `name`: a name for a function that cannot be imported.
    - `kwargs`: keyword arguments for `make_env`.

    >>> env = from_gymnasium("CartPole-v1")
    >>> env.obs_size, env.space.size, env.horizon
    (4, 2, 500)
    """
    if not (isinstance(make_env, str) or callable(make_env)):
        kind = type(make_env).__name__
        raise SettingError(
            f"make_env must be an id, a class, or a function that makes the environment; got an object of {kind}"
        )
    source = (
        make_env.removeprefix("gym:") if isinstance(make_env, str) else import_path_of(make_env)
    )
    task = task if isinstance(task, str) else import_path_of(task)
    label = name or ("" if isinstance(source, str) else label_of("make_env", source))
    env = GymEnv(source, task, max_steps, workers, label=label, kwargs=as_json(kwargs or {}))
    return HostMetaEnv(env=env, episodes=episodes)
