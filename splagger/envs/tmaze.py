"""T-Mazes: a long corridor with signals and two doors at the end (Beck et al., 2020)."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import SettingError
from splagger.ranges import Finite, Fraction, Several, check_fields
from splagger.spaces import Discrete


class TMazeTask(NamedTuple):
    """The correct door, and the values of the signal cells (+1 up, -1 down)."""

    door_up: Bool[Array, ""]
    signals: Float[Array, " cells"]


class TMazeState(NamedTuple):
    """The agent's cell and the noise that it observes there."""

    position: Int[Array, ""]
    noise: Float[Array, ""]


class TMaze(eqx.Module):
    """A corridor of `length` cells. Every action moves one cell forward; the action in the last cell opens a door.

    The correct door is UP if an odd number of signals is +1. With one signal, the signal is the door (T-LS);
    with two, the door is UP if they disagree (Agreement). Without signals, the door is random and only the
    noise reveals it, which is +1 with probability `noise_up` or `noise_down` (Latent).

    Observation: [at start, signal, at end, noise ±1]. Actions: left, right, up, down. In the last cell, left
    and up open the UP door; right and down open the DOWN door.

    >>> TMaze(length=1)
    Traceback (most recent call last):
    splagger.errors.SettingError: TMaze: length must be at least 2, got 1
    """

    length: Several = eqx.field(static=True, default=100)  # cells
    signals: tuple[int, ...] = eqx.field(static=True, default=(1,))  # cells that show a signal
    noise_up: Fraction = eqx.field(static=True, default=0.5)  # P(noise = +1) if the door is UP
    noise_down: Fraction = eqx.field(static=True, default=0.5)  # and if it is DOWN
    reward_right: Finite = eqx.field(static=True, default=4.0)
    reward_wrong: Finite = eqx.field(static=True, default=-3.0)

    def __check_init__(self):
        check_fields(self, "TMaze: ")
        outside = [cell for cell in self.signals if not 0 <= cell < self.length]
        if outside or len(set(self.signals)) < len(self.signals):
            raise SettingError(
                f"TMaze: signals must be different cells from 0 to {self.length - 1}, got {self.signals}"
            )

    @property
    def spec(self) -> EnvSpec:
        names = "left", "right", "up", "down"
        return EnvSpec("T-Maze", 4, Discrete(4), self.length, -1.0, 1.0, names, fixed_length=True)

    def sample_task(self, key: Key[Array, ""]) -> TMazeTask:
        ups = jr.bernoulli(key, shape=(max(1, len(self.signals)),))
        signals = 2.0 * ups[: len(self.signals)].astype(jnp.float32) - 1.0
        return TMazeTask(ups.sum() % 2 == 1, signals)

    def reset(self, key: Key[Array, ""], task: TMazeTask):
        state = TMazeState(jnp.int32(0), self._noise(key, task))
        return state, self.observe(task, state)

    def step(self, key: Key[Array, ""], task: TMazeTask, state: TMazeState, action: Int[Array, ""]):
        at_end = state.position == self.length - 1
        chose_up = (action == 0) | (action == 2)
        prize = jnp.where(chose_up == task.door_up, self.reward_right, self.reward_wrong)
        position = jnp.minimum(state.position + 1, self.length - 1)
        state = TMazeState(position, self._noise(key, task))
        reward = jnp.where(at_end, prize, 0.0)
        return state, Step(self.observe(task, state), reward, at_end, jnp.zeros((), bool))

    def observe(self, task: TMazeTask, state: TMazeState) -> Float[Array, " 4"]:
        at_signal = state.position == jnp.array(self.signals, jnp.int32)
        signal = jnp.sum(at_signal * task.signals)
        first, last = state.position == 0, state.position == self.length - 1
        return jnp.stack([first, signal, last, state.noise]).astype(jnp.float32)

    def shows_signal(self, obs: Float[Array, " 4"]) -> Bool[Array, ""]:
        """Returns whether the observation is that of a signal cell."""
        return obs[1] != 0

    def render(self, task: TMazeTask, state: TMazeState, episode: int = 0, episodes: int = 1):
        from splagger.envs import pictures

        cells = [(c, int(s)) for c, s in zip(self.signals, task.signals.tolist(), strict=True)]
        return pictures.tmaze(
            self.length,
            int(state.position),
            cells,
            bool(task.door_up),
            episode + 1,
            episodes,
            float(state.noise),
        )

    def _noise(self, key, task):
        up = jr.bernoulli(key, jnp.where(task.door_up, self.noise_up, self.noise_down))
        return 2.0 * up.astype(jnp.float32) - 1.0
