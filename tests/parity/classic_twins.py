"""Independent numpy twins of the classic tasks and of the endless T-Maze.

Like `tests.parity.twins`, they are written from the specification, hold one environment each, and take random
numbers as arguments. Every `step` returns (observation, reward, terminated, truncated).
"""

import numpy as np


class BanditTwin:
    """Pulls an arm; `draw` in [0, 1) decides whether it pays."""

    def __init__(self, pulls):
        self.pulls = pulls

    def reset(self, probabilities):
        self.probabilities, self.count = probabilities, 0
        return np.ones(1, np.float32)

    def step(self, action, draw):
        self.count += 1
        reward = 1.0 if draw < self.probabilities[action] else 0.0
        return np.ones(1, np.float32), reward, False, self.count >= self.pulls


class TabularTwin:
    """A Markov decision process; `draw` selects the next state by inverting the distribution function."""

    def __init__(self, horizon):
        self.horizon = horizon

    def reset(self, transitions, rewards):
        self.transitions, self.rewards = transitions, rewards
        self.node = self.time = 0
        return self._observe()

    def step(self, action, draw, noise):
        reward = np.float32(self.rewards[self.node, action]) + np.float32(noise)
        total = np.cumsum(self.transitions[self.node, action].astype(float))
        self.node, self.time = int(np.searchsorted(total, draw, side="right")), self.time + 1
        return self._observe(), reward, False, self.time >= self.horizon

    def _observe(self):
        return np.eye(len(self.rewards), dtype=np.float32)[self.node]


MOVES = {0: (0, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1), 4: (-1, 0)}  # stay, up, right, down, left


class GridTwin:
    """An agent in a square room; walls stop it."""

    def __init__(self, size, steps, start):
        self.size, self.steps, self.origin = size, steps, tuple(start)

    def begin(self):
        self.cell, self.time = self.origin, 0
        return self._observe()

    def move(self, action):
        x, y = (a + b for a, b in zip(self.cell, MOVES[int(action)], strict=True))
        if 0 <= x < self.size and 0 <= y < self.size:
            self.cell = (x, y)
        self.time += 1

    def _observe(self):
        return np.array(self.cell, np.float32) / np.float32(self.size - 1)


class GoalGridTwin(GridTwin):
    """Rewards 1 on the goal and minus the penalty elsewhere."""

    def __init__(self, size, steps, start, penalty):
        super().__init__(size, steps, start)
        self.penalty = np.float32(penalty)

    def reset(self, goal):
        self.goal = tuple(int(x) for x in goal)
        return self.begin()

    def step(self, action):
        self.move(action)
        reward = 1.0 if self.cell == self.goal else -self.penalty
        return self._observe(), reward, False, self.time >= self.steps


class KeyToDoorTwin(GridTwin):
    """Rewards the key once, then the door, which ends the episode."""

    def reset(self, key, door):
        self.key, self.door = (tuple(int(x) for x in cell) for cell in (key, door))
        self.holds = False
        return self.begin()

    def step(self, action):
        self.move(action)
        late = self.time >= self.steps
        if self.holds and self.cell == self.door:
            return self._observe(), 1.0, True, late
        picked = not self.holds and self.cell == self.key
        self.holds = self.holds or picked
        return self._observe(), float(picked), False, late


class PointTwin:
    """A point that moves by clipped actions; near the goal it is rewarded by 1 - distance."""

    def __init__(self, steps, radius, speed):
        self.steps, self.radius, self.speed = steps, radius, speed

    def reset(self, goal):
        self.goal, self.position, self.time = np.asarray(goal, float), np.zeros(2), 0
        return self.position

    def step(self, action):
        self.position = self.position + self.speed * np.minimum(np.maximum(action, -1), 1)
        self.time += 1
        distance = np.linalg.norm(self.position - self.goal)
        reward = 1 - distance if distance <= self.radius else 0.0
        return self.position, reward, False, self.time >= self.steps


class EndlessTwin:
    """Laps through a corridor. Draws below `change` bring a new signal; draws below 1/2 mean up, or noise +1."""

    def __init__(self, length, laps, change):
        self.length, self.laps, self.change = length, laps, change

    def reset(self, signal, noise):
        self.signal, self.visible = int(signal), True
        self.cell = self.lap = 0
        return self._observe(noise)

    def step(self, action, show, up, noise):
        reward, noise = 0.0, 1 if noise < 0.5 else -1
        if self.cell < self.length - 1:
            self.cell += 1
            return self._observe(noise), reward, False, False
        opened = 1 if action in (0, 2) else -1
        reward = 4.0 if opened == self.signal else -3.0
        self.cell, self.lap = 0, self.lap + 1
        self.visible = show < self.change
        if self.visible:
            self.signal = 1 if up < 0.5 else -1
        return self._observe(noise), reward, False, self.lap >= self.laps

    def _observe(self, noise):
        signal = self.signal if self.visible and self.cell == 1 else 0
        return np.array([self.cell == 0, signal, self.cell == self.length - 1, noise], np.float32)
