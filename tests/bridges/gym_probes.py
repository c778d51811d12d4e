"""Gymnasium environments with one property each, valid and invalid; their path is tests.bridges.gym_probes:NAME."""

import itertools
import os
import sys

import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env):
    """Observes time, the task (a number) and the sum of the actions. Ends at time 4 or at a sum of 3."""

    metadata = {"render_modes": ["rgb_array"]}
    created, broken = 0, False

    def __init__(self, render_mode=None):
        type(self).created += 1
        self.render_mode, self.closed = render_mode, False
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,))
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.total = 0, 0
        self.secret = self.sample(options)
        return self.observe(), {}

    def sample(self, options):
        return self.np_random.uniform()

    def step(self, action):
        self.time, self.total = self.time + 1, self.total + int(action)
        if self.broken and self.time == 3:
            return self.fail(self.observe(), 0.0)
        terminated = self.total == 3
        reward = self.secret + self.total
        return self.observe(), reward, terminated, not terminated and self.time == 4, {}

    def observe(self):
        return np.array([self.time, self.secret, self.total], np.float32)

    def fail(self, obs, reward):
        raise ZeroDivisionError("no reason")

    def render(self):
        return np.full((8, 8, 3), 10 * self.time, np.uint8) if self.render_mode else None

    def close(self):
        self.closed = True


class ByMethod(Walk):
    """`sample_task` samples the task, which resets keep; each reset draws noise that is not part of the task."""

    task = None

    def sample_task(self):
        self.task = self.np_random.uniform()

    def sample(self, options):
        self.noise = self.np_random.uniform()
        return 0.0 if self.task is None else self.task

    def observe(self):
        return np.array([self.time, self.secret, self.noise], np.float32)


class ByOptions(ByMethod):
    """The task is an option of `reset`."""

    sample_task = None

    def sample(self, options):
        self.noise = self.np_random.uniform()
        return options["task"]


class Tasked(gymnasium.Wrapper):
    """A wrapper that samples the tasks of the environment inside it."""

    def __init__(self, render_mode=None):
        super().__init__(KeepsTask(render_mode))

    def sample_task(self):
        self.env.task = self.env.np_random.uniform()


class KeepsTask(ByMethod):
    sample_task = None


def draw_task(rng):
    return rng.integers(1000)


class Restless(Walk):
    """Never repeats itself, whatever the seed."""

    clock = itertools.count()

    def sample(self, options):
        return float(next(self.clock))


class Endless(Walk):
    """Never ends."""

    def step(self, action):
        obs, reward, *_ = super().step(action)
        return obs, reward, False, False, {}


class Breaks(Walk):
    """Fails at the third step; each subclass fails in its own way."""

    broken = True


class Leaves(Walk):
    """Ends the program at its first step."""

    def step(self, action):
        sys.exit(1)


class NanObservation(Breaks):
    def fail(self, obs, reward):
        return obs * np.array([1, np.nan, 1]), reward, False, False, {}


class WrongShape(Breaks):
    def fail(self, obs, reward):
        return obs[:2], reward, False, False, {}


class NanReward(Breaks):
    def fail(self, obs, reward):
        return obs, np.nan, False, False, {}


class TextReward(Breaks):
    def fail(self, obs, reward):
        return obs, "much", False, False, {}


class Quits(Breaks):
    def fail(self, obs, reward):
        os._exit(1)


class OldStep(Breaks):
    def fail(self, obs, reward):
        return obs, reward, False, {}


class OldReset(Walk):
    def reset(self, **options):
        return super().reset(**options)[0]


class BadReset(Walk):
    def sample(self, options):
        raise KeyError("task")


class Everything(Walk):
    """Observes a dictionary; its actions are a box with various bounds."""

    def __init__(self):
        super().__init__()
        parts = {"box": spaces.Box(0, 255, (2, 2), np.uint8), "one": spaces.Discrete(3, start=5)}
        parts |= {"many": spaces.MultiDiscrete([2, 3]), "bits": spaces.MultiBinary(2)}
        self.observation_space = spaces.Dict(parts)
        self.action_space = spaces.Box(np.float32([[0, -4]]), np.float32([[10, np.inf]]))
        self.taken = None

    def observe(self):
        box = np.arange(4, dtype=np.uint8).reshape(2, 2)
        return {"box": box, "one": 6, "many": np.array([1, 2]), "bits": np.array([0, 1], np.int8)}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken = action
        return self.observe(), float(action[0, 0] + 100 * action[0, 1]), False, False, {}


class LostKey(Everything):
    def observe(self):
        return {k: v for k, v in super().observe().items() if k != "one"}


class Unflattenable(Walk):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Sequence(spaces.Discrete(3))


class ManyActions(Walk):
    def __init__(self):
        super().__init__()
        self.action_space = spaces.Dict({"left": spaces.Discrete(2)})


class Shifted(Walk):
    """Has the actions -1, 0 and 1."""

    def __init__(self):
        super().__init__()
        self.action_space = spaces.Discrete(3, start=-1)


class Stuck(Walk):
    """Does not take `render_mode` and cannot be drawn."""

    def __init__(self):
        super().__init__()


class Recall(Walk):
    """Shows a sign first and asks for it at the fourth step: 1 for the right answer, -1 for the wrong one."""

    def sample(self, options):
        return float(self.np_random.integers(2))

    def step(self, action):
        self.time += 1
        asked = self.time == 4
        reward = (1.0 if action == self.secret else -1.0) if asked else 0.0
        return self.observe(), reward, asked, False, {}

    def observe(self):
        sign = 2 * self.secret - 1 if self.time == 0 else 0
        return np.array([self.time / 4, sign, 0], np.float32)


class BothAtOnce(Walk):
    """Terminates at time 4, which is also its time limit, so both flags are true."""

    def step(self, action):
        obs, reward, _, _, info = super().step(action)
        return obs, reward, self.time == 4, self.time == 4, info


class Sized(Walk):
    """Observes `size` zeros."""

    def __init__(self, size=1, render_mode=None):
        super().__init__(render_mode)
        self.observation_space = spaces.Box(-1, 1, (size,))

    def observe(self):
        return np.zeros(self.observation_space.shape, np.float32)
