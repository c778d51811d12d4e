"""The meta-episode: K episodes of one task in a row. The end of an episode is not the end of a task."""

import abc
import functools as ft
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.envs.protocol import Drawable, Env
from splagger.errors import SettingError
from splagger.spaces import ActionSpace


class MetaState(NamedTuple):
    """A task under way; `obs` is what the agent acts on next."""

    task: Any
    inner: Any
    obs: Float[Array, " obs"]
    episode: Int[Array, ""]


class MetaStep(NamedTuple):
    """What one step brought; `next_obs` is what was seen before anything was reset."""

    next_obs: Float[Array, " obs"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    episode_done: Bool[Array, ""]
    task_done: Bool[Array, ""]


class StepNoise(NamedTuple):
    """The random numbers of one step, drawn before it is taken; `task` is the next one if this one ends."""

    step_key: Key[Array, ""]
    episode_key: Key[Array, ""]
    task: Any


class AbstractMetaEnv(eqx.Module):
    """What training needs from an environment: tasks of K episodes each, one after another, without end.

    `reset(key)` returns a state whose `obs` the agent acts on. The random numbers of a step are drawn first, by
    `sample_noise`; then `advance` is a deterministic function of noise, state and action.
    """

    env: eqx.AbstractVar[Any]  # has a `spec`
    episodes: eqx.AbstractVar[int]
    # How many environments an evaluation steps at once: enough to fill a machine, few enough for its memory.
    max_parallel: ClassVar[int] = 256

    def __check_init__(self):
        if self.episodes < 1:
            kind = type(self).__name__
            raise SettingError(f"{kind}: episodes must be at least 1, got {self.episodes}")

    @property
    def obs_size(self) -> int:
        return self.env.spec.obs_size + (self.episodes > 1)

    @property
    def space(self) -> ActionSpace:
        return self.env.spec.space

    @property
    def horizon(self) -> int:
        """The longest a meta-episode can last, in steps."""
        return self.episodes * self.env.spec.horizon

    @property
    def task_length(self) -> int | None:
        """The number of steps of every meta-episode, if all have the same; else None."""
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
        """The same environment, ready to be drawn."""

    @abc.abstractmethod
    def render(self, state: Any) -> Any:
        """An RGB picture [H, W, 3] of a state, for people."""


class MetaEnv(AbstractMetaEnv):
    """K episodes of one task, then a new task, without end.

    With K > 1 a done flag is appended to the observation: 1 where a step has just finished an
    episode, so on the first observation of the next episode of the same task, and on the last
    observation of all; 0 elsewhere, also on the first observation of a task.

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
        """Draws the random numbers of one step. They do not depend on the state, so a loop can draw them all at once."""
        step_key, task_key, episode_key = jr.split(key, 3)
        return StepNoise(step_key, episode_key, self.env.sample_task(task_key))

    def advance(self, noise: StepNoise, state: MetaState, action: Array):
        """Takes one step with random numbers that are already drawn."""
        inner, out = self.env.step(noise.step_key, state.task, state.inner, action)
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
        truncated = (
            out.truncated & ~out.terminated
        )  # an episode that ended by itself was not truncated
        step = MetaStep(next_obs, out.reward, out.terminated, truncated, done, task_done)
        return new, step

    def to_render(self) -> "MetaEnv":
        if not isinstance(self.env, Drawable):
            name = self.env.spec.name
            raise SettingError(
                f"{name} cannot be drawn: it has no render(task, state, episode, episodes) → [H, W, 3]"
            )
        return self

    def render(self, state: MetaState):
        draw: Any = self.to_render().env
        return draw.render(state.task, state.inner, int(state.episode), self.episodes)

    def _flag(self, obs, done):
        if self.episodes == 1:
            return obs
        return jnp.append(obs, jnp.asarray(done, obs.dtype))


def _select(condition, yes, no):
    return jax.tree.map(ft.partial(jnp.where, condition), yes, no)
