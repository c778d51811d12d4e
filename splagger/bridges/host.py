"""Meta-episodes of environments that are not JAX: every step of the whole batch is one call of the host.

The state holds the history of a task, so that `reset` and `step` are pure functions like those of
`MetaEnv`, and a checkpoint of the state is a checkpoint of the environment.
"""

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

from splagger.bridges.gym_env import GymEnv, as_json, layout
from splagger.bridges.importing import import_path_of, label_of
from splagger.bridges.pool import Begun, History, Pool, Stepped
from splagger.bridges.workers import WorkerPool
from splagger.envs.meta import AbstractMetaEnv, MetaStep


class HostState(NamedTuple):
    """A task under way: its seed, the actions since it began, and a fingerprint of what they led to."""

    seed: UInt32[Array, ""]
    actions: Num[Array, "horizon *action"]
    count: Int[Array, ""]
    fingerprint: UInt32[Array, "2"]
    obs: Float[Array, " obs"]
    episode: Int[Array, ""]


class HostMetaEnv(AbstractMetaEnv):
    """K episodes of one task of a Gymnasium environment, then a new task, without end.

    The done flag, the ends of episodes and of tasks are those of `MetaEnv`.
    """

    max_parallel: ClassVar[int] = 32  # each of them is a program of its own
    env: GymEnv = eqx.field(static=True)
    episodes: int = eqx.field(static=True)

    def reset(self, key: Key[Array, ""]) -> HostState:
        seed, action = _seed(key), self.space.zero()
        begun = Begun(*self._on_host(_reset, self._shapes(Begun), seed))
        actions = jnp.zeros((self.horizon, *action.shape), action.dtype)
        return HostState(seed, actions, jnp.int32(0), begun.fingerprint, begun.obs, jnp.int32(0))

    def sample_noise(self, key: Key[Array, ""]) -> UInt32[Array, ""]:
        """The seed of the next task, should this one end."""
        return _seed(key)

    def advance(self, next_seed: UInt32[Array, ""], state: HostState, action: Array):
        action = jnp.asarray(action, state.actions.dtype)
        history = History(state.seed, state.actions, state.count, state.fingerprint, state.obs)
        out = Stepped(*self._on_host(_step, self._shapes(Stepped), *history, action, next_seed))
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

    def flatten(self, obs: Any, done: bool = False) -> np.ndarray:
        """An observation of Gymnasium's as the agent sees it; `done`: an episode of the task just ended."""
        flat = np.asarray(layout(self.env).flatten(obs), np.float32)
        return flat if self.episodes == 1 else np.append(flat, np.float32(done))

    def action(self, action: Any) -> Any:
        """An action of the agent's as Gymnasium takes it: scaled to the bounds of its space."""
        return layout(self.env).action(np.asarray(action))

    def to_render(self) -> "HostMetaEnv":
        """Its environments are made with render_mode="rgb_array"."""
        drawn = dataclasses.replace(self.env, render=True, workers=0)
        return HostMetaEnv(env=drawn, episodes=self.episodes)

    def render(self, state: HostState):
        history = (state.seed, state.actions, state.count, state.fingerprint, state.obs)
        return pool_of(self).render(History(*map(np.asarray, history)))

    def _shapes(self, kind: Any):
        """What one environment answers."""
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
        call = ft.partial(_remembering_failures, function, self)
        return jax.pure_callback(call, shapes, *args, vmap_method="broadcast_all")


@ft.cache
def pool_of(env: HostMetaEnv) -> Pool | WorkerPool:
    """The live environments of this process; made at the first call from it."""
    kind = WorkerPool if env.env.workers else Pool
    return kind(env.env, env.episodes, jax.local_device_count())


def _reset(env: HostMetaEnv, seed: np.ndarray):
    return _unflatten(pool_of(env).reset(seed.reshape(-1)), seed.shape)


def _step(env: HostMetaEnv, *columns: np.ndarray):
    """`columns` are a history's leaves, actions and seeds; seeds have the axes of the batch alone."""
    batch = columns[-1].shape
    flat = [column.reshape(-1, *column.shape[len(batch) :]) for column in columns]
    return _unflatten(pool_of(env).step(History(*flat[:-2]), flat[-2], flat[-1]), batch)


def _unflatten(columns: Any, batch: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    return tuple(column.reshape((*batch, *column.shape[1:])) for column in columns)


def _seed(key: Key[Array, ""]) -> UInt32[Array, ""]:
    """31 bits: more than some simulators take."""
    return jr.bits(key, (), jnp.uint32) >> 1


_failures: list[Exception] = []


def _remembering_failures(function: Callable[..., Any], env: HostMetaEnv, *args: Any):
    try:
        return function(env, *map(np.asarray, args))
    except Exception as error:
        _failures.append(error)
        raise


@contextlib.contextmanager
def unwrapped_errors():
    """Raises what an environment raised, instead of the error in which the compiled program wraps it.

    JAX also logs every failure of a callback with its traceback. Inside this context it does not log those of our
    environments, since they are raised here.
    """
    _failures.clear()
    logger = logging.getLogger("jax._src.callback")
    logger.addFilter(_is_not_ours)
    try:
        yield
    except Exception as error:
        if _failures and error is not _failures[0]:
            raise _failures[0] from None
        raise
    finally:
        logger.removeFilter(_is_not_ours)


def _is_not_ours(record: logging.LogRecord) -> bool:
    return not (record.exc_info and record.exc_info[1] in _failures)


def from_gymnasium(
    make_env: str | Callable[..., Any],
    task: str | Callable[..., Any] = "auto",
    episodes: int = 1,
    max_steps: int | None = None,
    workers: int = 0,
    name: str = "",
    kwargs: str | Mapping[str, Any] | None = None,
) -> HostMetaEnv:
    """A Gymnasium environment for `splagger.train`: an id, or a function that makes one.

    `task` says how tasks are drawn (docs/bring-your-own.md); a task has `episodes` episodes of at most
    `max_steps` steps. `name` is for functions that have none of their own, `kwargs` are what the environment is
    made with.

    >>> env = from_gymnasium("CartPole-v1")
    >>> env.obs_size, env.space.size, env.horizon
    (4, 2, 500)
    """
    source = make_env if isinstance(make_env, str) else import_path_of(make_env)
    task = task if isinstance(task, str) else import_path_of(task)
    label = name or ("" if isinstance(source, str) else label_of("make_env", source))
    env = GymEnv(source, task, max_steps, workers, label=label, kwargs=as_json(kwargs or {}))
    return HostMetaEnv(env=env, episodes=episodes)
