"""Independent numpy twins of the T-mazes, the Planning Game, the image maze and the meta-episode wrapper.

Tests compare them with the JAX environments, step by step. They are written from the specification alone, hold
one environment each (no batch), favor clarity over speed, and draw no random numbers: random numbers are arguments,
so that a test can pass the same draws to both sides.

Every `step` returns (observation, reward, terminated, truncated).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# T-maze family actions: 0 left, 1 right, 2 up, 3 down


def correct_door_ls(signal: int) -> bool:
    """T-LS: returns the door that the single signal names. True is the UP door."""
    return signal == 1


def correct_door_agreement(first: int, second: int) -> bool:
    """T-Maze Agreement: returns UP (True) if the two signals disagree, DOWN (False) if they agree."""
    return first != second


def latent_noise_probability(door_up: bool) -> float:
    """T-Maze Latent: returns the probability of noise +1, the only trace of the task in the observations."""
    return 0.7 if door_up else 0.5


class TMazeTwin:
    """A corridor that can only be walked to the right, and a choice between two doors at its end.

    `signals` holds the cells that show a signal: (1,) for T-LS, (1, 50) for Agreement, () for Latent.
    The three tasks differ otherwise only in which door is correct and in how the noise is drawn, and both
    are arguments here; the functions above give the rules for them.
    """

    def __init__(
        self,
        length: int = 100,
        signals: Sequence[int] = (1,),
        correct: float = 4.0,
        wrong: float = -3.0,
    ):
        self.end = length - 1
        self.signals = tuple(signals)
        self.correct, self.wrong = correct, wrong

    def reset(self, signal_values: Sequence[int], door_up: bool, noise: int) -> np.ndarray:
        """Starts an episode at cell 0. `signal_values` holds one ±1 (+1 means UP) per signal cell."""
        if len(signal_values) != len(self.signals):
            raise ValueError("one value per signal cell is needed")
        self.shown = dict(zip(self.signals, signal_values, strict=True))
        self.door_up = bool(door_up)
        self.position = 0
        return self._observe(noise)

    def step(self, action: int, noise: int) -> tuple[np.ndarray, float, bool, bool]:
        """Moves right for any action; at the end cell, left and up open UP, right and down open DOWN.

        The agent stays at the end cell when it opens a door, so that the terminal observation is the one
        of the end cell, with fresh noise. There is no time limit that could be reached.
        """
        if self.position < self.end:
            self.position += 1
            return self._observe(noise), 0.0, False, False
        opened_up = action in (0, 2)
        reward = self.correct if opened_up == self.door_up else self.wrong
        return self._observe(noise), reward, True, False

    def _observe(self, noise: int) -> np.ndarray:
        """Returns [is_start, signal, is_end, noise]."""
        signal = self.shown.get(self.position, 0)
        return np.array(
            [self.position == 0, signal, self.position == self.end, noise], dtype=np.float32
        )


# Planning Game actions: 0 up, 1 down, 2 left, 3 right, 4 collect


class PlanningTwin:
    """Collect goals on a torus of `size` x `size` nodes whose labels are shuffled for each task.

    A node's index is x * size + y. With `show_labels` the observation holds the one-hot labels of the
    current node and of the goal; without it (the "justgoal" variant) only whether the agent is on the goal.
    """

    MOVES = {0: (0, 1), 1: (0, -1), 2: (-1, 0), 3: (1, 0), 4: (0, 0)}
    COLLECT = 4

    def __init__(self, size: int = 3, horizon: int = 100, show_labels: bool = True):
        self.size, self.horizon, self.show_labels = size, horizon, show_labels

    def reset(self, labels: Sequence[int], start: int, goal: int) -> np.ndarray:
        """Starts a task. `labels[node]` is the label of a node; `start` and `goal` are different nodes."""
        if sorted(labels) != list(range(self.size**2)) or start == goal:
            raise ValueError(
                "labels must be a permutation of all nodes, and the goal differ from the start"
            )
        self.labels = [int(label) for label in labels]
        self.x, self.y = divmod(int(start), self.size)
        self.goal = int(goal)
        self.steps = 0
        return self._observe()

    @property
    def node(self) -> int:
        """The node that the agent is on."""
        return self.x * self.size + self.y

    def step(self, action: int, next_goal: int) -> tuple[np.ndarray, float, bool, bool]:
        """Moves, or collects the goal if on it; then `next_goal` takes its place (it is ignored otherwise).

        The last step of the horizon counts like any other: a goal collected in it is rewarded and replaced.
        """
        reward = 0.0
        if action == self.COLLECT and self.node == self.goal:
            if next_goal == self.node:
                raise ValueError("the next goal must differ from the current node")
            reward = 1.0
            self.goal = int(next_goal)
        dx, dy = self.MOVES[int(action)]
        self.x = (self.x + dx) % self.size
        self.y = (self.y + dy) % self.size
        self.steps += 1
        return self._observe(), reward, False, self.steps >= self.horizon

    def _observe(self) -> np.ndarray:
        """Returns the two one-hot labels, or the single number of the justgoal variant."""
        if not self.show_labels:
            return np.array([self.node == self.goal], dtype=np.float32)
        nodes = self.size**2
        obs = np.zeros(2 * nodes, dtype=np.float32)
        obs[self.labels[self.node]] = 1.0
        obs[nodes + self.labels[self.goal]] = 1.0
        return obs


# MC-LS actions: 0 left, 1 forward, 2 right


class MineMazeTwin:
    """A colored signal, a row of rooms to walk through around a column, and a door chosen by the signal.

    Views are names of pictures, not pixels: "green", "red", "end", and "(x,y)" inside a room, followed by
    " iron" or " diamond" at the positions whose picture shows the room's kind.
    """

    LEFT, FORWARD, RIGHT = 0, 1, 2
    KINDS = ("iron", "diamond")
    SHOWS_KIND = ((0, 0), (0, 1), (-1, 1), (1, 1))
    PATH = {  # (position, action): next position; (0, 3) leads to the next room
        ((0, 0), FORWARD): (0, 1),
        ((0, 1), LEFT): (-1, 1),
        ((0, 1), RIGHT): (1, 1),
        ((-1, 1), FORWARD): (-1, 2),
        ((1, 1), FORWARD): (1, 2),
        ((-1, 2), FORWARD): (-1, 3),
        ((1, 2), FORWARD): (1, 3),
        ((-1, 3), RIGHT): (0, 3),
        ((1, 3), LEFT): (0, 3),
        ((0, 3), FORWARD): (0, 0),
    }

    def __init__(self, rooms: int = 16, timeout: int = 200):
        self.rooms, self.timeout = rooms, timeout

    def reset(self, up: bool, kinds: Sequence[int]) -> str:
        """Starts an episode before the signal: green if `up`, else red. `kinds` holds a 0 or 1 per room."""
        if len(kinds) != self.rooms:
            raise ValueError("one kind per room is needed")
        self.up = bool(up)
        self.kinds = [int(kind) for kind in kinds]
        self.phase = self.room = self.steps = 0
        self.position = (0, 0)
        return self.view()

    def step(self, action: int) -> tuple[str, float, bool, bool]:
        """Acts in the current phase; actions that are not allowed change nothing and give 0.

        The step that reaches the timeout ends the episode without acting: the view stays and the reward is
        0, even if a door was chosen in it.
        """
        action, self.steps = int(action), self.steps + 1
        if self.steps >= self.timeout:
            return self.view(), 0.0, False, True
        if self.phase == 0:
            reward, terminated = self._pass_signal(action), False
        elif self.phase == 1:
            reward, terminated = self._walk(action), False
        else:  # right is correct after green, left after red; forward does nothing
            terminated = action != self.FORWARD
            reward = 0.0 if not terminated else 4.0 if (action == self.RIGHT) == self.up else -3.0
        return self.view(), reward, terminated, False

    def view(self) -> str:
        """Returns the name of the picture in front of the agent."""
        if self.phase == 0:
            return "green" if self.up else "red"
        if self.phase == 2:
            return "end"
        x, y = self.position
        kind = " " + self.KINDS[self.kinds[self.room]] if self.position in self.SHOWS_KIND else ""
        return f"({x},{y}){kind}"

    def _pass_signal(self, action: int) -> float:
        """Only a move to the right leads to the first room."""
        if action != self.RIGHT:
            return 0.0
        self.phase = 1
        return 0.1

    def _walk(self, action: int) -> float:
        """Moves. Every allowed move gives 0.1, except passing the column on the wrong side, which gives 0."""
        here = self.position
        if (here, action) not in self.PATH:
            return 0.0
        self.position = self.PATH[here, action]
        if here == (0, 1):
            correct_side = self.LEFT if self.kinds[self.room] == 0 else self.RIGHT
            return 0.1 if action == correct_side else 0.0
        if here == (0, 3):
            self.room += 1
            self.phase = 1 if self.room < self.rooms else 2
        return 0.1


class MetaTwin:
    """Bookkeeping of a meta-episode: `episodes` episodes of one task, and the done flag if more than one."""

    def __init__(self, episodes: int):
        self.episodes = episodes

    def reset(self, obs: np.ndarray) -> np.ndarray:
        """Starts a task with its first observation."""
        self.finished = 0
        return self._flag(obs, False)

    def step(
        self, inner_obs, done, first_obs_of_next_episode
    ) -> tuple[np.ndarray, np.ndarray, bool, bool]:
        """Returns (next_obs, obs, episode_done, task_done) after a step that gave `inner_obs` and `done`.

        `next_obs` is what the step led to, before any reset. `obs` is what the agent acts on next: after an
        inner episode end it is the next episode's first observation, with flag 1. At a task end the caller
        replaces it by the next task's first observation (see `reset`), so here it equals `next_obs`.
        """
        self.finished += bool(done)
        task_done = self.finished == self.episodes
        next_obs = self._flag(inner_obs, done)
        obs = self._flag(first_obs_of_next_episode, True) if done and not task_done else next_obs
        return next_obs, obs, bool(done), task_done

    def _flag(self, obs: np.ndarray, done: bool) -> np.ndarray:
        """Appends the done flag if a meta-episode has more than one episode."""
        if self.episodes == 1:
            return np.asarray(obs, dtype=np.float32)
        return np.append(obs, done).astype(np.float32)
