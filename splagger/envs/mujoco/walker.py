"""Walker: walk forward. The task is the body: masses, inertias, frictions and dampings."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Key

from splagger.envs.mujoco.physics import RobotState, advance, pose, start
from splagger.envs.mujoco.simulations import Robot, load
from splagger.envs.protocol import EnvSpec, Step
from splagger.ranges import Amount, Finite, Positive, Spread, Steps, check_fields
from splagger.spaces import Continuous

SCALED = {"body_mass": 8, "body_inertia": 24, "geom_friction": 24, "dof_damping": 9}
ROBOT = Robot("walker.xml", frame_skip=4, scaled=tuple(SCALED))
FACTORS = sum(SCALED.values())
JOINTS, ACTUATORS = 9, 6
HEIGHT = 1, 1.25  # index among the positions, initial value
ANGLE = 2


class Walker(eqx.Module):
    """A two-legged robot that walks forward with a random body.

    Reward: speed + `alive_reward` - `control_cost` · Σ a², where a is the action before MuJoCo clips it to ±1.
    Observation: 8 positions (all but x) and 9 velocities; the velocities are clipped to ±10.

    An episode terminates if the torso's height is not between `lowest` and `highest`, or if it leans by
    `steepest` radians or more. It is truncated after `horizon` steps of 0.016 s, or if the physics becomes
    unstable.

    The task is 65 factors of the model's parameters, base^u with u ~ U(-`spread`, `spread`). The base is
    `base` for masses, inertias and frictions, and `damping_base` for dampings.

    >>> Walker().sample_task(jr.key(0)).shape
    (65,)
    """

    horizon: Steps = eqx.field(static=True, default=200)
    alive_reward: Finite = eqx.field(static=True, default=1.0)
    control_cost: Amount = eqx.field(static=True, default=0.001)
    reset_noise: Amount = eqx.field(static=True, default=0.005)
    lowest: Finite = eqx.field(static=True, default=0.8)
    highest: Finite = eqx.field(static=True, default=2.0)
    steepest: Amount = eqx.field(static=True, default=1.0)
    spread: Spread = eqx.field(static=True, default=3.0)
    base: Positive = eqx.field(static=True, default=1.5)
    damping_base: Positive = eqx.field(static=True, default=1.3)

    def __check_init__(self):
        check_fields(self, "Walker: ")

    @property
    def spec(self) -> EnvSpec:
        size = 2 * JOINTS - 1
        return EnvSpec("Walker", size, Continuous(ACTUATORS), self.horizon, -jnp.inf, jnp.inf)

    def sample_task(self, key: Key[Array, ""]) -> Float[Array, " factors"]:
        exponent = self.spread * jr.uniform(key, (FACTORS,), minval=-1.0)
        damping = jnp.arange(FACTORS) >= FACTORS - SCALED["dof_damping"]
        return jnp.where(damping, self.damping_base, self.base) ** exponent

    def reset(self, key: Key[Array, ""], task: Float[Array, " factors"]):
        noise = self.reset_noise * jr.uniform(key, (2, JOINTS), minval=-1.0)
        index, height = HEIGHT
        state = start(noise[0].at[index].add(height), noise[1])
        return state, self.observe(task, state)

    def step(self, key: Key[Array, ""], task, state: RobotState, action: Float[Array, " 6"]):
        motion = advance(ROBOT, state.physics, action, task)
        state = RobotState(motion.physics, state.time + 1)
        reward = motion.speed + self.alive_reward
        reward -= self.control_cost * jnp.sum(jnp.square(action))
        fallen = self._fallen(state)
        truncated = ~fallen & ((state.time == self.horizon) | motion.failed)
        return state, Step(self.observe(task, state), reward, fallen, truncated)

    def observe(self, task: Float[Array, " factors"], state: RobotState) -> Float[Array, " obs"]:
        position, velocity = pose(state)
        return jnp.concatenate([position[1:], jnp.clip(velocity, -10.0, 10.0)])

    def render(self, task, state: RobotState, episode: int = 0, episodes: int = 1):
        from splagger.envs.mujoco.camera import photograph

        mass = load(ROBOT).body_mass @ np.asarray(task)[: SCALED["body_mass"]]
        body = f"task: a body of {mass:.1f} kg"
        return photograph(ROBOT, state, "Walker", body, episode, episodes)

    def _fallen(self, state):
        position, _ = pose(state)
        height, angle = position[HEIGHT[0]], position[ANGLE]
        upright = (
            (self.lowest < height) & (height < self.highest) & (jnp.abs(angle) < self.steepest)
        )
        return ~upright
