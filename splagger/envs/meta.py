"""Meta-episodes: K consecutive episodes of one task."""

import abc
import functools as ft
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.envs.protocol import Drawable, Env, follows
from splagger.errors import SettingError
from splagger.images import Image
from splagger.ranges import Episodes, check
from splagger.spaces import ActionSpace


class MetaState(NamedTuple):
    """The state of a task; `obs` is the observation that the agent acts on next."""

    task: Any
    inner: Any
    obs: Float[Array, " obs"]
    episode: Int[Array, ""]


class MetaStep(NamedTuple):
    """The result of one step; `next_obs` is the observation before any reset."""

    next_obs: Float[Array, " obs"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    episode_done: Bool[Array, ""]
    task_done: Bool[Array, ""]


class StepNoise(NamedTuple):
    """The random numbers of one step; `task` is the next task, which is used if the current one ends."""

    step_key: Key[Array, ""]
    episode_key: Key[Array, ""]
    task: Any


class AbstractMetaEnv(eqx.Module):
    """The interface that training needs: an endless sequence of tasks with K episodes each.

    `reset(key)` returns a state whose `obs` the agent acts on. `sample_noise` draws the random numbers of a
    step; `advance` itself is deterministic.
    """

    env: eqx.AbstractVar[Any]  # has a `spec`
    episodes: eqx.AbstractVar[int]
    # Environments that an evaluation steps in parallel: enough to use the machine, few enough for its memory.
    max_parallel: ClassVar[int] = 256

    def __check_init__(self):
        check(f"{type(self).__name__}: episodes", self.episodes, Episodes)

    @property
    def obs_size(self) -> int:
        return self.env.spec.obs_size + (self.episodes > 1)

    @property
    def space(self) -> ActionSpace:
        return self.env.spec.space

    @property
    def images(self) -> tuple[Image, ...]:
        """The images at the beginning of each observation."""
        return self.env.spec.images

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know before training, one sentence each."""
        return ()

    @property
    def horizon(self) -> int:
        """The largest number of steps in a meta-episode."""
        return self.episodes * self.env.spec.horizon

    @property
    def task_length(self) -> int | None:
        """The number of steps in every meta-episode, or None if it varies."""
        return self.horizon if self.env.spec.fixed_length else None

    @abc.abstractmethod
    def reset(self, key: Key[Array, ""]) -> Any:
        """Returns the start of a new task."""

    @abc.abstractmethod
    def sample_noise(self, key: Key[Array, ""]) -> Any:
        """Draws the random numbers of one step."""

    @abc.abstractmethod
    def advance(self, noise: Any, state: Any, action: Array) -> tuple[Any, MetaStep]:
        """Returns (state, MetaStep); a task that ends is followed by a new one."""

    def step(self, key: Key[Array, ""], state: Any, action: Array) -> tuple[Any, MetaStep]:
        """Draws the noise and takes a step: `advance(sample_noise(key), state, action)`."""
        return self.advance(self.sample_noise(key), state, action)

    @abc.abstractmethod
    def to_render(self) -> "AbstractMetaEnv":
        """Returns the same environment, ready for `render`."""

    @abc.abstractmethod
    def render(self, state: Any) -> Any:
        """Returns an RGB image [H, W, 3] of a state."""


class MetaEnv(AbstractMetaEnv):
    """An endless sequence of tasks in a JAX environment, with K episodes each.

    With K > 1, a done flag is appended to the observation. It is 1 after a step that ended an episode: on the
    task's last observation, and on the first observation of each later episode. It is 0 elsewhere, including
    the first observation of a task.

    >>> from splagger.envs import TMaze
    >>> env = MetaEnv(TMaze(length=5), episodes=2)
    >>> state = env.reset(jr.key(0))
    >>> state, step = env.step(jr.key(1), state, jnp.int32(0))
    >>> state.obs.shape
    (5,)
    """

    env: Env
    episodes: int = eqx.field(static=True)

    def reset(self, key: Key[Array, ""]) -> MetaState:
        task_key, episode_key = jr.split(key)
        task = self.env.sample_task(task_key)
        inner, obs = self.env.reset(episode_key, task)
        return MetaState(task, inner, self._flag(obs, False), jnp.int32(0))

    def sample_noise(self, key: Key[Array, ""]) -> StepNoise:
        """Draws the random numbers of one step. A loop can draw them in advance: they do not depend on the state."""
        step_key, task_key, episode_key = jr.split(key, 3)
        return StepNoise(step_key, episode_key, self.env.sample_task(task_key))

    def advance(self, noise: StepNoise, state: MetaState, action: Array):
        """Takes one step with the given random numbers; returns (state, MetaStep)."""
        inner, out = self.env.step(noise.step_key, state.task, state.inner, action)
        out = out._replace(reward=jnp.asarray(out.reward, getattr(out.reward, "dtype", float)))
        done = out.terminated | out.truncated
        task_done = done & (state.episode == self.episodes - 1)
        task = _select(task_done, noise.task, state.task)
        first, first_obs = self.env.reset(noise.episode_key, task)
        next_obs = self._flag(out.obs, done)
        new = MetaState(
            task,
            _select(done, first, inner),
            jnp.where(done, self._flag(first_obs, ~task_done), next_obs),
            jnp.where(task_done, 0, state.episode + done),
        )
        # An episode that terminates at its time limit is not truncated.
        truncated = out.truncated & ~out.terminated
        step = MetaStep(next_obs, out.reward, out.terminated, truncated, done, task_done)
        return new, step

    def to_render(self) -> "MetaEnv":
        if not follows(self.env, Drawable):
            name = self.env.spec.name
            raise SettingError(
                f"{name} cannot be drawn: it has no render(task, state, episode, episodes) → [H, W, 3]; splagger "
                "evaluate needs no pictures, and splagger inspect has --no-pictures (draw=False in Python)"
            )
        return self

    def render(self, state: MetaState):
        env: Any = self.to_render().env
        return env.render(state.task, state.inner, int(state.episode), self.episodes)

    def _flag(self, obs, done):
        if self.episodes == 1:
            return obs
        return jnp.append(obs, jnp.asarray(done, obs.dtype))


def _select(condition, yes, no):
    return jax.tree.map(ft.partial(jnp.where, condition), yes, no)
