"""Scripted agents whose returns are known, to check the environments' rules and reward scales.

Like a learning agent, an expert takes the observations, actions and rewards of the current meta-episode, for N
environments at once. A trailing done flag in the observation is optional.
The loop is

    expert.reset(n)
    action = expert.act(obs)                            # [N, D] -> [N]
    expert.observe(action, reward, next_obs, task_done) # next_obs is what `act` gets next

Only `act` absorbs observations, each of them once. Where `task_done` is true, `observe` empties the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

T_RIGHT, T_UP, T_DOWN = 1, 2, 3
P_UP, P_DOWN, P_LEFT, P_RIGHT, P_COLLECT = range(5)
M_LEFT, M_FORWARD, M_RIGHT = range(3)


class Expert:
    """Base class. `memory` holds one entry per environment, created by `blank` at the start of a task."""

    blank = float

    def reset(self, n: int) -> None:
        """Prepares for `n` environments at the start of their tasks."""
        self.n = n
        self.memory = np.array([self.blank() for _ in range(n)])

    def act(self, obs: np.ndarray) -> np.ndarray:
        """Absorbs the observations and chooses an action per environment."""
        raise NotImplementedError

    def observe(
        self, action: np.ndarray, reward: np.ndarray, next_obs: np.ndarray, task_done: np.ndarray
    ) -> None:
        """Absorbs the outcome of a step; most experts only need the ends of tasks."""
        for i in np.flatnonzero(task_done):
            self.memory[i] = self.blank()


class Guesser(Expert):
    """Chooses among all actions at random."""

    def __init__(self, rng: np.random.Generator, n_actions: int):
        self.rng, self.n_actions = rng, n_actions

    def act(self, obs: np.ndarray) -> np.ndarray:
        return self.rng.integers(self.n_actions, size=self.n)


class NoiseFollower(Expert):
    """T-mazes without memory: chooses UP if the present noise has the given sign, always if the sign is 0."""

    def __init__(self, sign: int):
        self.sign = sign

    def act(self, obs: np.ndarray) -> np.ndarray:
        return np.where(obs[:, 3] * self.sign >= 0, T_UP, T_DOWN)


class CorridorExpert(Expert):
    """T-mazes: walks to the end with one number of evidence in memory, and chooses UP if it is positive."""

    START, SIGNAL, END, NOISE = range(4)

    def update(self, obs: np.ndarray) -> np.ndarray:
        """Returns the evidence after these observations."""
        raise NotImplementedError

    def act(self, obs: np.ndarray) -> np.ndarray:
        self.memory = self.update(np.asarray(obs, dtype=float))
        door = np.where(self.memory > 0, T_UP, T_DOWN)
        return np.where(obs[:, self.END] > 0.5, door, T_RIGHT)


class SignalReader(CorridorExpert):
    """T-LS: remembers the last signal."""

    def update(self, obs: np.ndarray) -> np.ndarray:
        signal = obs[:, self.SIGNAL]
        return np.where(signal != 0, signal, self.memory)


class AgreementReader(CorridorExpert):
    """T-Maze Agreement: minus the product of the episode's signals, so that disagreement means UP."""

    def update(self, obs: np.ndarray) -> np.ndarray:
        signal = obs[:, self.SIGNAL]
        evidence = np.where(obs[:, self.START] > 0.5, -1.0, self.memory)
        return np.where(signal != 0, evidence * signal, evidence)


class BayesLatent(CorridorExpert):
    """T-Maze Latent: log-likelihood ratio of UP to DOWN, from all noise of the meta-episode.

    The rewards, which reveal the task after the first episode, are ignored on purpose: the known return is for
    the noise alone.
    """

    def __init__(self, p_up: float = 0.7, p_down: float = 0.5):
        self.if_plus = np.log(p_up / p_down)
        self.if_minus = np.log((1 - p_up) / (1 - p_down))

    def update(self, obs: np.ndarray) -> np.ndarray:
        return self.memory + np.where(obs[:, self.NOISE] > 0, self.if_plus, self.if_minus)


@dataclass
class Map:
    """The explorer's knowledge of one torus: its position relative to its first node, and the labels' nodes."""

    here: tuple[int, int] = (0, 0)
    node_of: dict[int, tuple[int, int]] = field(default_factory=dict)  # label -> node


class Explorer(Expert):
    """Planning: visits the nearest unknown node until the goal's label is known, then goes there and collects."""

    MOVES = {P_UP: (0, 1), P_DOWN: (0, -1), P_LEFT: (-1, 0), P_RIGHT: (1, 0), P_COLLECT: (0, 0)}
    blank = Map

    def __init__(self, size: int = 3):
        self.size = size
        self.nodes = {(x, y) for x in range(size) for y in range(size)}

    def offset(self, start: tuple[int, int], end: tuple[int, int]) -> tuple[int, int]:
        """Returns the shortest path on the torus, negative to the left and down."""
        half = self.size // 2
        return tuple((b - a + half) % self.size - half for a, b in zip(start, end, strict=True))

    def act(self, obs: np.ndarray) -> np.ndarray:
        labels = np.argmax(obs[:, : self.size**2], axis=1)
        goals = np.argmax(obs[:, self.size**2 : 2 * self.size**2], axis=1)
        return np.array(
            [self.act_one(*entry) for entry in zip(self.memory, labels, goals, strict=True)]
        )

    def act_one(self, known: Map, label: int, goal: int) -> int:
        """Chooses the action in one environment. Equally near unknown nodes are visited in a fixed order."""
        known.node_of[label] = known.here
        if label == goal:
            return P_COLLECT
        nodes = (
            [known.node_of[goal]]
            if goal in known.node_of
            else self.nodes - set(known.node_of.values())
        )
        offsets = [self.offset(known.here, node) for node in nodes]
        dx, dy = min(offsets, key=lambda offset: (abs(offset[0]) + abs(offset[1]), offset))
        if dx:
            return P_RIGHT if dx > 0 else P_LEFT
        return P_UP if dy > 0 else P_DOWN

    def observe(
        self, action: np.ndarray, reward: np.ndarray, next_obs: np.ndarray, task_done: np.ndarray
    ) -> None:
        for known, chosen in zip(self.memory, action, strict=True):
            (x, y), (dx, dy) = known.here, self.MOVES[int(chosen)]
            known.here = ((x + dx) % self.size, (y + dy) % self.size)
        super().observe(action, reward, next_obs, task_done)


class Sweeper(Expert):
    """Planning without a map: walks a Hamiltonian cycle, restarted at each goal, and collects goals on the way.

    Works with and without labels in the observation; with labels, equal one-hots mean "on the goal".
    The memory is the progress along the cycle.
    """

    blank = int

    def __init__(self, size: int = 3):
        self.size = size
        self.cycle = np.array(([P_RIGHT] * (size - 1) + [P_UP]) * size)

    def act(self, obs: np.ndarray) -> np.ndarray:
        nodes = self.size**2
        if obs.shape[1] >= 2 * nodes:
            on_goal = (obs[:, :nodes] == obs[:, nodes : 2 * nodes]).all(axis=1)
        else:
            on_goal = obs[:, 0] > 0.5
        action = np.where(on_goal, P_COLLECT, self.cycle[self.memory])
        self.memory = np.where(on_goal, 0, (self.memory + 1) % nodes)
        return action


class MineExpert(Expert):
    """MC-LS: walks every room on the correct side; opens the door of the signal, or guesses it.

    `classify` names the view of one observation row (with its done flag, if there is one): "green", "red",
    "end", or "(x,y)" with " iron" or " diamond" where the picture shows the room's kind.
    """

    TURNS = {"green": M_RIGHT, "red": M_RIGHT, "(0,1) iron": M_LEFT, "(0,1) diamond": M_RIGHT}
    TURNS |= {"(-1,3)": M_RIGHT, "(1,3)": M_LEFT}  # forward elsewhere
    blank = bool  # whether the signal was green

    def __init__(
        self, classify: Callable[[np.ndarray], str], guess_door: bool, rng: np.random.Generator
    ):
        self.classify, self.guess_door, self.rng = classify, guess_door, rng

    def act(self, obs: np.ndarray) -> np.ndarray:
        return np.array([self.act_one(i, self.classify(row)) for i, row in enumerate(obs)])

    def act_one(self, i: int, view: str) -> int:
        """Chooses the action of environment `i`."""
        if view in ("green", "red"):
            self.memory[i] = view == "green"
        if view == "end":
            right = self.rng.random() < 0.5 if self.guess_door else self.memory[i]
            return M_RIGHT if right else M_LEFT
        return self.TURNS.get(view, M_FORWARD)
