"""Scripted policies for grids: search systematically, then take shortest paths."""

import numpy as np

from benchmarks.scripted.policies import Policy, steps_toward
from splagger.envs.classic.goal_grid import MOVES

# The first two episodes of an optimal search of VariBAD's 5 × 5 grid, as cells. The first tour visits 14 possible
# goals in a row, and the second reaches the other seven at the earliest possible steps.
OPTIMAL_TOURS = (
    (
        *((0, 1), (0, 2), (0, 3), (0, 4), (1, 4), (1, 3), (1, 2), (2, 2)),
        *((2, 1), (3, 1), (3, 2), (3, 3), (2, 3), (2, 4), (3, 4)),
    ),
    ((1, 0), (2, 0), (3, 0), (4, 0), (4, 1), (4, 2), (4, 3), (4, 4)),
)


def optimal_grid_return() -> float:
    """Returns the Bayes-optimal return of VariBAD's grid: 5 × 5 cells, four episodes of 15 steps.

    An episode in which the agent is on the goal from step x on yields R(x) = (16 - x) - 0.1 (x - 1); one in which it
    never is yields -1.5. Once found, a goal at distance d is reached at step d. Let k be the step at which the
    search finds a goal. A goal found in the first episode yields R(k) + 3 R(d) in all, one found in the second
    -1.5 + R(k) + 2 R(d). Summed over the 21 goals, this is

        3 Σ R(d) + Σ_first R(k) + Σ_second (R(k) - R(d) - 1.5).

    Step 1 cannot reach a goal, and each step finds at most one, so that the first episode finds at most 14, at the
    steps 2 … 15. In the second, k ≥ d, so that no term exceeds -1.5. `OPTIMAL_TOURS` attains both bounds.
    """
    value = lambda step: (16 - step) - 0.1 * (step - 1)  # noqa: E731
    distances = [x + y for x in range(5) for y in range(5) if max(x, y) > 1]
    first, second = sum(map(value, range(2, 16))), -1.5 * (len(distances) - 14)
    return (3 * sum(map(value, distances)) + first + second) / len(distances)


class Searcher(Policy):
    """Grids with a goal: visits the cells of its tours, then the nearest cells not yet visited, until it is rewarded.

    Equally near cells are visited in the order of their distance from the start, then by row.
    """

    def __init__(self, size: int, start: tuple[int, int], tours: tuple = ()):
        self.size, self.origin, self.tours = size, np.array(start), tours
        self.cells = np.array([(x, y) for x in range(size) for y in range(size)])
        self.distances = np.abs(self.cells[:, None] - self.cells).sum(2)

    def start(self) -> None:
        self.unvisited = np.ones((self.n, len(self.cells)), bool)
        self.goal = np.full(self.n, -1)
        self.episode = self.time = 0

    def index(self, cell: np.ndarray) -> np.ndarray:
        return cell[:, 0] * self.size + cell[:, 1]

    def locate(self, obs: np.ndarray) -> np.ndarray:
        """Returns the agents' cells and the flags of new episodes."""
        self.cell = np.rint(obs[:, :2] * (self.size - 1)).astype(int)
        return obs[:, 2] > 0.5

    def nearest(self, candidates: np.ndarray) -> np.ndarray:
        """Returns the index of the nearest candidate cell, of a mask [N, cells]; its cell if there is none."""
        here = self.index(self.cell)
        from_start = np.abs(self.cells - self.origin).sum(1)
        cost = self.distances[here] + (from_start + np.arange(len(self.cells)) * 1e-3) * 1e-3
        found = np.where(candidates, cost, np.inf).argmin(1)
        return np.where(candidates.any(1), found, here)

    def act(self, obs: np.ndarray) -> np.ndarray:
        if self.locate(obs).all() and self.time:
            self.episode, self.time = self.episode + 1, 0
        target = self.nearest(self.unvisited)
        if self.episode < len(self.tours) and self.time < len(self.tours[self.episode]):
            x, y = self.tours[self.episode][self.time]
            target = np.full(self.n, x * self.size + y)
        target = np.where(self.goal >= 0, self.goal, target)
        self.time += 1
        return steps_toward(self.cell, self.cells[target])

    def observe(self, action: np.ndarray, reward: np.ndarray) -> None:
        here = self.index(self.after(action))
        self.unvisited[np.arange(self.n), here] = False
        self.goal = np.where(reward > 0, here, self.goal)

    def after(self, action: np.ndarray) -> np.ndarray:
        """Returns the cells after these actions."""
        return (self.cell + np.array(MOVES)[action]).clip(0, self.size - 1)


class KeySearcher(Searcher):
    """Key to Door: searches the key, then the door, nearest cells first; later episodes go straight to what is known.

    Cells that were visited without the key may still be the door.
    """

    def start(self) -> None:
        super().start()
        shape = (self.n, len(self.cells))
        self.maybe_key, self.maybe_door = np.ones(shape, bool), np.ones(shape, bool)
        self.has_key = np.zeros(self.n, bool)

    def act(self, obs: np.ndarray) -> np.ndarray:
        self.has_key &= ~self.locate(obs)
        candidates = np.where(self.has_key[:, None], self.maybe_door, self.maybe_key)
        return steps_toward(self.cell, self.cells[self.nearest(candidates)])

    def observe(self, action: np.ndarray, reward: np.ndarray) -> None:
        rows, here = np.arange(self.n), self.index(self.after(action))
        found, opened = (reward > 0) & ~self.has_key, (reward > 0) & self.has_key
        missed_key, missed_door = ~found & ~self.has_key, ~opened & self.has_key
        self.maybe_key[rows[missed_key], here[missed_key]] = False
        self.maybe_door[rows[missed_door], here[missed_door]] = False
        for mask, known in ((self.maybe_key, found), (self.maybe_door, opened)):
            mask[known] = False
            mask[rows[known], here[known]] = True
        self.maybe_door[rows[found], here[found]] = False  # key and door differ
        self.has_key |= found
