"""A point robot with a sparse reward: find a goal on a half circle, then go there (Rakelly et al., 2019)."""

import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

from splagger.envs.protocol import EnvSpec, Step
from splagger.ranges import Positive, Steps, check_fields
from splagger.spaces import Continuous


class PointState(NamedTuple):
    """The robot's position and the time."""

    position: Float[Array, "2"]
    time: Int[Array, ""]


class PointRobot(eqx.Module):
    """A point in the plane. An action moves it by up to `speed` along each axis.

    The task is a goal on the upper half of the unit circle. Within `radius` of it, a step yields 1 - distance; all
    other steps yield 0. Every episode starts at the origin and has `steps` steps. Observation: the position.

    >>> PointRobot().spec.space
    Continuous(size=2)
    """

    steps: Steps = eqx.field(static=True, default=20)
    radius: Positive = eqx.field(static=True, default=0.2)
    speed: Positive = eqx.field(static=True, default=0.1)

    def __check_init__(self):
        check_fields(self, "PointRobot: ")

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("Point Robot", 2, Continuous(2), self.steps, fixed_length=True)

    def sample_task(self, key: Key[Array, ""]) -> Float[Array, "2"]:
        angle = jr.uniform(key, maxval=math.pi)
        return jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    def reset(self, key: Key[Array, ""], task: Float[Array, "2"]):
        state = PointState(jnp.zeros(2), jnp.int32(0))
        return state, state.position

    def step(self, key: Key[Array, ""], task, state: PointState, action: Float[Array, "2"]):
        position = state.position + self.speed * jnp.clip(action, -1.0, 1.0)
        distance = jnp.sqrt(jnp.square(position - task).sum())
        reward = jnp.where(distance <= self.radius, 1 - distance, 0.0)
        state = PointState(position, state.time + 1)
        ended = state.time == self.steps
        return state, Step(position, reward, jnp.zeros((), bool), ended)

    def render(self, task, state: PointState, episode: int = 0, episodes: int = 1):
        from splagger.envs.classic import pictures

        position, goal = state.position.tolist(), task.tolist()
        return pictures.point(position, goal, self.radius, episode + 1, episodes, int(state.time))
