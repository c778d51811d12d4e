"""Scripted policies for the classic tasks. Their returns are the references that learned agents are compared with.

Like a learned agent, a policy takes the observations, actions and rewards of the current meta-episode, for N
environments at once:

    policy.reset(n)
    action = policy.act(obs)                      # [N, D] → [N] or [N, A]
    policy.observe(action, reward)                # the outcome of that action

A trailing done flag in the observation marks the first observation of a later episode. All policies use NumPy only.
"""

from abc import ABC, abstractmethod

import numpy as np

from benchmarks.scripted.gittins import gittins_indices
from splagger.envs.classic.goal_grid import MOVES
from splagger.spaces import ActionSpace, Discrete


class Policy(ABC):
    """A policy with one memory per environment. Randomness comes from `self.rng`."""

    def reset(self, n: int, seed: int = 0) -> None:
        """Prepares for `n` environments at the start of their tasks."""
        self.n, self.rng = n, np.random.default_rng(seed)
        self.start()

    def start(self) -> None:  # noqa: B027 - a policy may have no memory
        """Empties the memories."""

    @abstractmethod
    def act(self, obs: np.ndarray) -> np.ndarray:
        """Chooses an action per environment."""

    def observe(self, action: np.ndarray, reward: np.ndarray) -> None:  # noqa: B027 - as above
        """Absorbs the rewards of the actions."""


class Uniform(Policy):
    """Chooses uniformly among all actions, or in [-1, 1] along each axis."""

    def __init__(self, space: ActionSpace):
        self.space = space

    def act(self, obs: np.ndarray) -> np.ndarray:
        if isinstance(self.space, Discrete):
            return self.rng.integers(self.space.size, size=self.n)
        return self.rng.uniform(-1, 1, (self.n, self.space.size))


class BanditPolicy(Policy):
    """Bandits: keeps the wins and losses of every arm and pulls the one with the largest score."""

    def __init__(self, arms: int, pulls: int):
        self.arms, self.pulls = arms, pulls

    def start(self) -> None:
        self.wins = np.zeros((self.n, self.arms), int)
        self.losses = np.zeros((self.n, self.arms), int)
        self.time = 0

    @abstractmethod
    def scores(self) -> np.ndarray:
        """Returns a number per environment and arm."""

    def act(self, obs: np.ndarray) -> np.ndarray:
        return self.scores().argmax(1)

    def observe(self, action: np.ndarray, reward: np.ndarray) -> None:
        rows = np.arange(self.n)
        self.wins[rows, action] += reward > 0.5
        self.losses[rows, action] += reward < 0.5
        self.time += 1


class Thompson(BanditPolicy):
    """Samples every arm's probability from its posterior, Beta(wins + 1, losses + 1)."""

    def scores(self) -> np.ndarray:
        return self.rng.beta(self.wins + 1, self.losses + 1)


class Gittins(BanditPolicy):
    """Pulls the arm with the largest finite-horizon Gittins index."""

    def scores(self) -> np.ndarray:
        return gittins_indices(self.pulls)[self.pulls - self.time][self.wins, self.losses]


class Planner(Policy):
    """Tabular MDPs: plans with posterior means, plus `bonus` posterior standard deviations of each mean reward.

    The posterior of transitions is Dirichlet(1 + counts); that of a mean reward is N((1 + sum) / (1 + n), 1 / (1 + n)).
    """

    def __init__(self, states: int, actions: int, horizon: int, bonus: float = 0.75):
        self.sizes, self.horizon, self.bonus = (states, actions), horizon, bonus

    def start(self) -> None:
        states, actions = self.sizes
        self.counts = np.ones((self.n, states, actions, states), np.float32)
        self.total = np.ones((self.n, states, actions), np.float32)
        self.visits = np.ones((self.n, states, actions), np.float32)
        self.previous, self.time = None, 0

    def act(self, obs: np.ndarray) -> np.ndarray:
        rows, node = np.arange(self.n), obs[:, : self.sizes[0]].argmax(1)
        if self.previous is not None and self.time % self.horizon:  # not after a reset
            self.counts[rows, *self.previous, node] += 1
        self.node = node
        return self.plan()[rows, node].argmax(1)

    def plan(self) -> np.ndarray:
        """Returns the value of every action for the rest of the episode, [N, states, actions]."""
        reward = self.total / self.visits + self.bonus * self.visits**-0.5
        transitions = self.counts / self.counts.sum(-1, keepdims=True)
        values = reward
        for _ in range(self.horizon - self.time % self.horizon - 1):
            values = reward + (transitions @ values.max(2)[:, None, :, None])[..., 0]
        return values

    def observe(self, action: np.ndarray, reward: np.ndarray) -> None:
        rows = np.arange(self.n)
        self.previous = self.node, action
        self.total[rows, self.node, action] += reward
        self.visits[rows, self.node, action] += 1
        self.time += 1


class SweepingPoint(Policy):
    """Point robot: walks along the half circle until it is rewarded, which reveals the goal; then goes straight.

    A reward 1 - d places the goal on the circle at distance d. Of the two such points, the one ahead is correct: the
    part behind was searched. An episode continues the search where the last one ended.
    """

    def __init__(self, radius: float, speed: float):
        self.radius, self.speed = radius, speed

    def start(self) -> None:
        self.searched = np.zeros(self.n)  # the largest angle that was searched
        self.goal = np.full(self.n, np.nan)

    def act(self, obs: np.ndarray) -> np.ndarray:
        self.position = obs[:, :2].astype(float)
        known = ~np.isnan(self.goal)
        on_arc = np.abs(np.hypot(*self.position.T) - 1) < 1e-3
        angle = np.arctan2(self.position[:, 1], self.position[:, 0])
        reach = self.speed / np.maximum(np.abs(np.cos(angle)), np.abs(np.sin(angle)))
        forward = np.where(on_arc, angle + 0.95 * reach, self.searched)
        target = np.where(known, self.goal, np.minimum(forward, np.pi))
        aim = np.stack([np.cos(target), np.sin(target)], axis=1)
        steps = (aim - self.position) / self.speed
        return steps / np.maximum(1, np.abs(steps).max(1, keepdims=True))

    def observe(self, action: np.ndarray, reward: np.ndarray) -> None:
        position = self.position + self.speed * np.clip(action, -1, 1)
        distance, length = 1 - reward, np.hypot(*position.T)
        angle = np.arctan2(position[:, 1], position[:, 0])
        cosine = (1 + length**2 - distance**2) / np.maximum(2 * length, 1e-9)
        found = (reward > 0) & np.isnan(self.goal)
        ahead = angle + np.arccos(np.clip(cosine, -1, 1))
        self.goal = np.where(found, ahead, self.goal)
        reached = np.abs(length - 1) < 1e-3
        covered = angle + 2 * np.arcsin(self.radius / 2)
        self.searched = np.maximum(self.searched, np.where(reached, covered, 0))


class SignalReader(Policy):
    """The endless T-Maze: remembers the newest signal, or always the first one, and opens its door."""

    UP, DOWN = 2, 3

    def __init__(self, keep_first: bool = False):
        self.keep_first = keep_first

    def start(self) -> None:
        self.signal = np.zeros(self.n)

    def act(self, obs: np.ndarray) -> np.ndarray:
        new = (obs[:, 1] != 0) & ~(self.keep_first & (self.signal != 0))
        self.signal = np.where(new, obs[:, 1], self.signal)
        return np.where(self.signal > 0, self.UP, self.DOWN)


class Forgetful(Policy):
    """A policy whose memory is emptied before every step: it acts on the current observation alone."""

    def __init__(self, policy: Policy):
        self.policy = policy

    def start(self) -> None:
        self.policy.reset(self.n)

    def act(self, obs: np.ndarray) -> np.ndarray:
        self.policy.start()
        return self.policy.act(obs)


def steps_toward(cell: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Returns the action of a shortest path from each cell [N, 2] to its target, x first; stay if it is there."""
    dx, dy = np.sign(target - cell).T
    moves = np.where(dx != 0, [dx, 0 * dx], [0 * dy, dy]).T
    return (moves[:, None] == np.array(MOVES)).all(2).argmax(1)
