"""Goal finding in a grid: VariBAD's gridworld (Zintgraf et al., 2020) and Dark Room (Laskin et al., 2022)."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import SettingError
from splagger.ranges import Amount, Side, Steps, check_fields
from splagger.spaces import Discrete

MOVES = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))  # stay, up, right, down, left
NAMES = ("stay", "up", "right", "down", "left")


class GridState(NamedTuple):
    """The agent's cell, (x, y), and the time."""

    cell: Int[Array, "2"]
    time: Int[Array, ""]


def moved(cell: Int[Array, "2"], action: Int[Array, ""], size: int) -> Int[Array, "2"]:
    """Returns the cell after a move; the walls of the grid stop it."""
    return jnp.clip(cell + jnp.array(MOVES, jnp.int32)[action], 0, size - 1)


class GoalGrid(eqx.Module):
    """A grid with one hidden goal. Every step that ends on the goal yields 1, every other step -`penalty`.

    The task is the goal, uniform over the cells that are more than `clearance` rows or columns from `start`; a
    clearance of -1 allows every cell. Each episode starts at `start` and has `steps` steps. Observation: the agent's
    coordinates, from 0 to 1. The defaults are VariBAD's.

    >>> len(GoalGrid().goals)
    21
    """

    size: Side = eqx.field(static=True, default=5)
    steps: Steps = eqx.field(static=True, default=15)
    start: tuple[int, int] = eqx.field(static=True, default=(0, 0))
    penalty: Amount = eqx.field(static=True, default=0.1)
    clearance: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        check_fields(self, "GoalGrid: ")
        if len(self.start) != 2 or not all(0 <= x < self.size for x in self.start):
            raise SettingError(
                f"GoalGrid: start must be two coordinates from 0 to {self.size - 1}, got {self.start}"
            )
        if not self.goals:
            raise SettingError(f"GoalGrid: clearance {self.clearance} leaves no cell for the goal")

    @property
    def goals(self) -> tuple[tuple[int, int], ...]:
        """All cells where the goal can be."""
        cells = ((x, y) for x in range(self.size) for y in range(self.size))
        near = lambda cell: max(abs(a - b) for a, b in zip(cell, self.start, strict=True))  # noqa: E731
        return tuple(cell for cell in cells if near(cell) > self.clearance)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("Goal Grid", 2, Discrete(5), self.steps, 0.0, 1.0, NAMES, fixed_length=True)

    def sample_task(self, key: Key[Array, ""]) -> Int[Array, "2"]:
        goals = jnp.array(self.goals, jnp.int32)
        return goals[jr.randint(key, (), 0, len(self.goals))]

    def reset(self, key: Key[Array, ""], task: Int[Array, "2"]):
        state = GridState(jnp.array(self.start, jnp.int32), jnp.int32(0))
        return state, self.observe(state)

    def step(self, key: Key[Array, ""], task, state: GridState, action: Int[Array, ""]):
        state = GridState(moved(state.cell, action, self.size), state.time + 1)
        reward = jnp.where((state.cell == task).all(), 1.0, -self.penalty)
        ended = state.time == self.steps
        return state, Step(self.observe(state), reward, jnp.zeros((), bool), ended)

    def observe(self, state: GridState) -> Float[Array, "2"]:
        return state.cell / jnp.float32(self.size - 1)

    def render(self, task, state: GridState, episode: int = 0, episodes: int = 1):
        from splagger.envs.classic import pictures

        marks = {tuple(task.tolist()): "goal"}
        place = tuple(state.cell.tolist())
        return pictures.grid(
            "Goal Grid", self.size, place, marks, episode + 1, episodes, int(state.time)
        )
