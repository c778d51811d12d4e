"""MuJoCo as a pure function: the whole state of a simulation goes in, the state after an action comes out.

The C library runs on the host behind `jax.pure_callback`: however many axes are vmapped, one step of all
environments is one call. States are float64, carried by JAX as pairs of uint32, so that a run that was
interrupted goes on with the same bits.
"""

import functools as ft
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from splagger.envs.mujoco.exact import from_float64, narrow, to_float64, widen
from splagger.envs.mujoco.simulations import Robot, Simulations, load, threads


class RobotState(NamedTuple):
    """The physics, as float64 in words of 32 bits, and the steps since the episode began.

    In this order: time, positions, velocities, and the accelerations that the solver starts from.
    """

    physics: UInt32[Array, "numbers 2"]
    time: Int[Array, ""]


class Motion(NamedTuple):
    """What an action led to; `speed` is that along x, averaged over the action."""

    physics: UInt32[Array, "numbers 2"]
    speed: Float[Array, ""]
    failed: Bool[Array, ""]


def start(position: Float[Array, " joints"], velocity: Float[Array, " joints"]) -> RobotState:
    """The start of an episode. No physics is computed for it."""
    numbers = jnp.concatenate([jnp.zeros(1), position, velocity, jnp.zeros_like(velocity)])
    return RobotState(widen(numbers), jnp.int32(0))


def pose(state: RobotState) -> tuple[Float[Array, " joints"], Float[Array, " joints"]]:
    """(positions, velocities), rounded to float32."""
    joints = (state.physics.shape[0] - 1) // 3
    numbers = narrow(state.physics)
    return numbers[1 : joints + 1], numbers[joints + 1 : 2 * joints + 1]


def advance(
    robot: Robot,
    physics: UInt32[Array, "numbers 2"],
    action: Float[Array, " actuators"],
    factors: Float[Array, " factors"],
) -> Motion:
    """The motion of one action. `factors` multiply the robot's `scaled` fields, in that order."""
    load(robot)  # what is wrong with this or the next is told here, not from within a program
    threads()
    shapes = Motion(
        jax.ShapeDtypeStruct(physics.shape, jnp.uint32),
        jax.ShapeDtypeStruct((), jnp.float32),
        jax.ShapeDtypeStruct((), jnp.bool_),
    )
    return jax.pure_callback(
        _on_host(robot), shapes, physics, action, factors, vmap_method="broadcast_all"
    )


@ft.cache
def _on_host(robot: Robot):
    """The callback: arrays with any number of leading axes. Nothing in it may call JAX, which waits for it."""

    def call(physics, action, factors) -> Motion:
        physics, action, factors = np.asarray(physics), np.asarray(action), np.asarray(factors)
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
