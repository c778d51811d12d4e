"""The endless T-Maze: signals change, and an old one must be overwritten."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import SettingError
from splagger.ranges import Finite, Fraction, Several, Steps, check_fields
from splagger.spaces import Discrete

SIGNAL_CELL = 1


class EndlessState(NamedTuple):
    """The agent's cell and lap, the signal in force (+1 up, -1 down), whether this lap shows it, and the noise."""

    position: Int[Array, ""]
    lap: Int[Array, ""]
    signal: Float[Array, ""]
    shown: Bool[Array, ""]
    noise: Float[Array, ""]


class EndlessTMaze(eqx.Module):
    """A T-Maze whose last cell leads back to its start, for `laps` laps of `length` cells.

    The first lap shows a signal in cell 1. Each later lap shows a new one with probability `change`, drawn
    uniformly; otherwise it shows none and the last one stays in force. The action in the last cell of a lap opens
    the door that the signal in force names, or the wrong one.

    A running maximum cannot replace what it has seen, so that a new signal does not erase the old one. The task is the
    first signal. Observations and actions are those of `TMaze`.

    >>> EndlessTMaze(length=20, laps=10).spec.horizon
    200
    """

    length: Several = eqx.field(static=True, default=20)
    laps: Steps = eqx.field(static=True, default=10)
    change: Fraction = eqx.field(static=True, default=0.5)
    reward_right: Finite = eqx.field(static=True, default=4.0)
    reward_wrong: Finite = eqx.field(static=True, default=-3.0)

    def __check_init__(self):
        check_fields(self, "EndlessTMaze: ")
        if self.length < 3:
            raise SettingError(f"EndlessTMaze: length must be at least 3, got {self.length}")

    @property
    def spec(self) -> EnvSpec:
        names, horizon = ("left", "right", "up", "down"), self.length * self.laps
        return EnvSpec(
            "Endless T-Maze", 4, Discrete(4), horizon, -1.0, 1.0, names, fixed_length=True
        )

    def sample_task(self, key: Key[Array, ""]) -> Float[Array, ""]:
        return _sign(jr.bernoulli(key))

    def reset(self, key: Key[Array, ""], task: Float[Array, ""]):
        zero, noise = jnp.int32(0), _sign(jr.bernoulli(key))
        state = EndlessState(zero, zero, task, jnp.ones((), bool), noise)
        return state, self.observe(state)

    def step(self, key: Key[Array, ""], task, state: EndlessState, action: Int[Array, ""]):
        show, up, noise = jr.uniform(key, (3,))
        at_end = state.position == self.length - 1
        chose_up = (action == 0) | (action == 2)
        prize = jnp.where(chose_up == (state.signal > 0), self.reward_right, self.reward_wrong)
        changes = at_end & (show < self.change)
        state = EndlessState(
            jnp.where(at_end, 0, state.position + 1),
            state.lap + at_end,
            jnp.where(changes, _sign(up < 0.5), state.signal),
            jnp.where(at_end, changes, state.shown),
            _sign(noise < 0.5),
        )
        reward = jnp.where(at_end, prize, 0.0)
        ended = state.lap == self.laps
        return state, Step(self.observe(state), reward, jnp.zeros((), bool), ended)

    def observe(self, state: EndlessState) -> Float[Array, " 4"]:
        first, last = state.position == 0, state.position == self.length - 1
        signal = jnp.where(state.shown & (state.position == SIGNAL_CELL), state.signal, 0.0)
        return jnp.stack([first, signal, last, state.noise]).astype(jnp.float32)

    def shows_signal(self, obs: Float[Array, " 4"]) -> Bool[Array, ""]:
        """Returns whether the observation is that of a cell with a signal."""
        return obs[1] != 0

    def render(self, task, state: EndlessState, episode: int = 0, episodes: int = 1):
        from splagger.envs import pictures

        up = float(state.signal) > 0
        signals = [(SIGNAL_CELL, 1 if up else -1)] if bool(state.shown) else []
        lap = min(int(state.lap) + 1, self.laps)
        return pictures.tmaze(
            self.length,
            int(state.position),
            signals,
            up,
            lap,
            self.laps,
            float(state.noise),
            title="Endless T-Maze",
            unit="lap",
        )


def _sign(up: Bool[Array, ""]) -> Float[Array, ""]:
    return 2.0 * up.astype(jnp.float32) - 1.0
