"""Gymnasium environments with one property each, good and bad; found by name as tests.bridges.gym_probes:NAME."""

import itertools

import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env):
    """Seen: time, a number that the task is, the sum of the actions. Ends at time 4, or at a sum of 3."""

    metadata = {"render_modes": ["rgb_array"]}
    made, broken = 0, False

    def __init__(self, render_mode=None):
        type(self).made += 1
        self.render_mode, self.closed = render_mode, False
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,))
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.total = 0, 0
        self.secret = self.draw(options)
        return self.seen(), {}

    def draw(self, options):
        return self.np_random.uniform()

    def step(self, action):
        self.time, self.total = self.time + 1, self.total + int(action)
        if self.broken and self.time == 3:
            return self.go_wrong(self.seen(), 0.0)
        terminated = self.total == 3
        reward = self.secret + self.total
        return self.seen(), reward, terminated, not terminated and self.time == 4, {}

    def seen(self):
        return np.array([self.time, self.secret, self.total], np.float32)

    def go_wrong(self, obs, reward):
        raise ZeroDivisionError("no reason")

    def render(self):
        return np.full((8, 8, 3), 10 * self.time, np.uint8) if self.render_mode else None

    def close(self):
        self.closed = True


class ByMethod(Walk):
    """The task is drawn by `sample_task`, and kept over resets; the noise at each reset is not the task."""

    task = None

    def sample_task(self):
        self.task = self.np_random.uniform()

    def draw(self, options):
        self.noise = self.np_random.uniform()
        return 0.0 if self.task is None else self.task

    def seen(self):
        return np.array([self.time, self.secret, self.noise], np.float32)


class ByOptions(ByMethod):
    """The task comes with `reset`."""

    sample_task = None

    def draw(self, options):
        self.noise = self.np_random.uniform()
        return options["task"]


def draw_task(rng):
    return rng.integers(1000)


class Restless(Walk):
    """Never the same twice, whatever the seed."""

    clock = itertools.count()

    def draw(self, options):
        return float(next(self.clock))


class Endless(Walk):
    """Never ends by itself."""

    def step(self, action):
        obs, reward, *_ = super().step(action)
        return obs, reward, False, False, {}


class Breaks(Walk):
    """Goes wrong at the third step, each kind in its own way."""

    broken = True


class NanSeen(Breaks):
    def go_wrong(self, obs, reward):
        return obs * np.array([1, np.nan, 1]), reward, False, False, {}


class WrongShape(Breaks):
    def go_wrong(self, obs, reward):
        return obs[:2], reward, False, False, {}


class NanReward(Breaks):
    def go_wrong(self, obs, reward):
        return obs, np.nan, False, False, {}


class TextReward(Breaks):
    def go_wrong(self, obs, reward):
        return obs, "much", False, False, {}


class OldStep(Breaks):
    def go_wrong(self, obs, reward):
        return obs, reward, False, {}


class OldReset(Walk):
    def reset(self, **options):
        return super().reset(**options)[0]


class BadReset(Walk):
    def draw(self, options):
        raise KeyError("task")


class Everything(Walk):
    """A dictionary is seen; actions are a box of its own bounds."""

    def __init__(self):
        super().__init__()
        parts = {"box": spaces.Box(0, 255, (2, 2), np.uint8), "one": spaces.Discrete(3, start=5)}
        parts |= {"many": spaces.MultiDiscrete([2, 3]), "bits": spaces.MultiBinary(2)}
        self.observation_space = spaces.Dict(parts)
        self.action_space = spaces.Box(np.float32([[0, -4]]), np.float32([[10, np.inf]]))
        self.taken = None

    def seen(self):
        box = np.arange(4, dtype=np.uint8).reshape(2, 2)
        return {"box": box, "one": 6, "many": np.array([1, 2]), "bits": np.array([0, 1], np.int8)}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken = action
        return self.seen(), float(action[0, 0] + 100 * action[0, 1]), False, False, {}


class LostKey(Everything):
    def seen(self):
        return {k: v for k, v in super().seen().items() if k != "one"}


class Talks(Walk):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Sequence(spaces.Discrete(3))


class ManyActions(Walk):
    def __init__(self):
        super().__init__()
        self.action_space = spaces.MultiDiscrete([2, 2])


class Shifted(Walk):
    """Its actions are -1, 0 and 1."""

    def __init__(self):
        super().__init__()
        self.action_space = spaces.Discrete(3, start=-1)


class Stuck(Walk):
    """Takes no `render_mode`, and cannot be drawn."""

    def __init__(self):
        super().__init__()


class Recall(Walk):
    """A sign is seen first, and asked for at the fourth step: 1 for the right answer, -1 for the wrong one."""

    def draw(self, options):
        return float(self.np_random.integers(2))

    def step(self, action):
        self.time += 1
        asked = self.time == 4
        reward = (1.0 if action == self.secret else -1.0) if asked else 0.0
        return self.seen(), reward, asked, False, {}

    def seen(self):
        sign = 2 * self.secret - 1 if self.time == 0 else 0
        return np.array([self.time / 4, sign, 0], np.float32)


class BothAtOnce(Walk):
    """Ends at time 4, which is its time limit too: Gymnasium says both then."""

    def step(self, action):
        obs, reward, _, _, info = super().step(action)
        return obs, reward, self.time == 4, self.time == 4, info


class Sized(Walk):
    """Seen: as many zeros as it was told."""

    def __init__(self, size=1, render_mode=None):
        super().__init__(render_mode)
        self.observation_space = spaces.Box(-1, 1, (size,))

    def seen(self):
        return np.zeros(self.observation_space.shape, np.float32)
