"""Cheetah-Dir: run forward or backward. The direction is the task, and only the reward reveals it."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from splagger.envs.mujoco.physics import RobotState, advance, pose, start
from splagger.envs.mujoco.simulations import Robot
from splagger.envs.protocol import EnvSpec, Step
from splagger.ranges import Amount, Steps, check_fields
from splagger.spaces import Continuous

ROBOT = Robot("cheetah.xml", frame_skip=5, total_mass=14.0)
JOINTS, ACTUATORS = 9, 6


class Cheetah(eqx.Module):
    """A two-legged robot that runs forward or backward.

    Reward: direction · speed - `control_cost` · Σ a², where a is the action before MuJoCo clips it to ±1.
    Observation: 8 positions (all but x) and 9 velocities. Episodes last `horizon` steps of 0.05 s, and are
    truncated if the physics becomes unstable.

    >>> Cheetah().spec.obs_size
    17
    """

    horizon: Steps = eqx.field(static=True, default=200)
    control_cost: Amount = eqx.field(static=True, default=0.05)
    reset_noise: Amount = eqx.field(static=True, default=0.1)

    def __check_init__(self):
        check_fields(self, "Cheetah: ")

    @property
    def spec(self) -> EnvSpec:
        size = 2 * JOINTS - 1
        return EnvSpec("Cheetah-Dir", size, Continuous(ACTUATORS), self.horizon, -jnp.inf, jnp.inf)

    def sample_task(self, key: Key[Array, ""]) -> Float[Array, ""]:
        return jr.rademacher(key, dtype=jnp.float32)  # the direction: +1 forward, -1 backward

    def reset(self, key: Key[Array, ""], task: Float[Array, ""]):
        position_key, velocity_key = jr.split(key)
        position = self.reset_noise * jr.uniform(position_key, (JOINTS,), minval=-1.0)
        state = start(position, self.reset_noise * jr.normal(velocity_key, (JOINTS,)))
        return state, self.observe(task, state)

    def step(self, key: Key[Array, ""], task, state: RobotState, action: Float[Array, " 6"]):
        motion = advance(ROBOT, state.physics, action, jnp.zeros(0))
        state = RobotState(motion.physics, state.time + 1)
        reward = task * motion.speed - self.control_cost * jnp.sum(jnp.square(action))
        truncated = (state.time == self.horizon) | motion.failed
        return state, Step(self.observe(task, state), reward, jnp.zeros((), bool), truncated)

    def observe(self, task: Float[Array, ""], state: RobotState) -> Float[Array, " obs"]:
        position, velocity = pose(state)
        return jnp.concatenate([position[1:], velocity])

    def render(self, task, state: RobotState, episode: int = 0, episodes: int = 1):
        from splagger.envs.mujoco.camera import photograph

        goal = "forward" if task > 0 else "backward"
        return photograph(ROBOT, state, "Cheetah-Dir", f"task: run {goal}", episode, episodes)
