"""MuJoCo as a pure function from a simulation's complete state and an action to the next state.

The C library runs on the host, called by the compiled program. However many axes are vmapped, one step of all
environments is one call. States are float64, carried by JAX as pairs of uint32, so that an interrupted run
continues bit for bit.
"""

import functools as ft
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from splagger.envs.host_call import call_on_host
from splagger.envs.mujoco.exact import from_float64, narrow, to_float64, widen
from splagger.envs.mujoco.simulations import Robot, Simulations, load, threads


class RobotState(NamedTuple):
    """The physics, as float64 in 32-bit words, and the number of steps since the start of the episode.

    The numbers are, in this order: time, positions, velocities, and the solver's initial accelerations.
    """

    physics: UInt32[Array, "numbers 2"]
    time: Int[Array, ""]


class Motion(NamedTuple):
    """The result of an action; `speed` is the velocity along x, averaged over the action's duration."""

    physics: UInt32[Array, "numbers 2"]
    speed: Float[Array, ""]
    failed: Bool[Array, ""]


def start(position: Float[Array, " joints"], velocity: Float[Array, " joints"]) -> RobotState:
    """Returns the first state of an episode. This computes no physics."""
    numbers = jnp.concatenate([jnp.zeros(1), position, velocity, jnp.zeros_like(velocity)])
    return RobotState(widen(numbers), jnp.int32(0))


def pose(state: RobotState) -> tuple[Float[Array, " joints"], Float[Array, " joints"]]:
    """Returns (positions, velocities), rounded to float32."""
    joints = (state.physics.shape[0] - 1) // 3
    numbers = narrow(state.physics)
    return numbers[1 : joints + 1], numbers[joints + 1 : 2 * joints + 1]


def advance(
    robot: Robot,
    physics: UInt32[Array, "numbers 2"],
    action: Float[Array, " actuators"],
    factors: Float[Array, " factors"],
) -> Motion:
    """Simulates one action. `factors` multiply the robot's `scaled` fields, in that order."""
    load(robot)  # errors of this call and the next are raised here, not inside a compiled program
    threads()
    shapes = Motion(
        jax.ShapeDtypeStruct(physics.shape, jnp.uint32),
        jax.ShapeDtypeStruct((), jnp.float32),
        jax.ShapeDtypeStruct((), jnp.bool_),
    )
    return Motion(*call_on_host(_on_host(robot), shapes, physics, action, factors))


@ft.cache
def _on_host(robot: Robot):
    """Returns the callback, for any number of leading axes. It must not call JAX, because JAX waits for it."""

    def call(physics, action, factors) -> Motion:
        axes = physics.shape[:-2]
        count = math.prod(axes)
        simulations = Simulations.shared(robot, count, threads())
        numbers, speed, failed = simulations.step(
            to_float64(physics).reshape(count, -1),
            action.reshape(count, -1),
            factors.reshape(count, -1),
        )
        return Motion(
            from_float64(numbers).reshape(physics.shape),
            speed.astype(np.float32).reshape(axes),
            failed.reshape(axes),
        )

    return call
