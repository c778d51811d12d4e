"""Tiny Gymnasium environments with the spaces of other packages: images, text, and actions of several numbers."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Gallery(gymnasium.Env):
    """One step per episode: a picture shows two numbers, which the action must repeat. A text names the task.

    The first number is the bright column of the picture, the second one its bright row.
    """

    sizes = (2, 3)

    def __init__(self):
        picture = spaces.Box(0, 255, (6, 7, 3), np.uint8)
        parts = {"picture": picture, "count": spaces.Discrete(3), "title": spaces.Text(20)}
        self.observation_space = spaces.Dict(parts)
        self.action_space = spaces.MultiDiscrete(self.sizes)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.shown = [int(self.np_random.integers(size)) for size in self.sizes]
        return self.observe(), {}

    def observe(self):
        picture = np.zeros((6, 7, 3), np.uint8)
        picture[:, 2 * self.shown[0], 0] = 255
        picture[2 * self.shown[1], :, 1] = 200
        return {"picture": picture, "count": 1, "title": f"column {self.shown[0]}"}

    def step(self, action):
        assert self.action_space.contains(action), action
        right = [a == b for a, b in zip(action, self.shown, strict=True)]
        return self.observe(), float(np.mean(right)), True, False, {}


class Stack(gymnasium.Env):
    """Frames one after another, as Gymnasium's FrameStackObservation returns them; the actions are switches."""

    def __init__(self):
        self.observation_space = spaces.Box(0, 255, (2, 8, 9), np.uint8)
        self.action_space = spaces.MultiBinary((2, 2))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.pressed = np.zeros((2, 2), np.int8)
        return np.arange(144).reshape(2, 8, 9).astype(np.uint8), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.pressed = action
        return self.reset()[0], 0.0, False, True, {}


class OnlyText(Gallery):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Dict({"title": spaces.Text(20)})


class FailsAtOnce(Gallery):
    def reset(self, *, seed=None, options=None):
        raise OSError("the assets are missing")


class FourValues(Gallery):
    def step(self, action):
        return self.observe(), 0.0, True, {}


class WrongPicture(Gallery):
    def observe(self):
        return super().observe() | {"picture": np.zeros((6, 7), np.uint8)}


class LimitsItself(Gallery):
    """Says how long an episode may last as MiniGrid does."""

    max_steps = 12


class Ragged(gymnasium.Env):
    """Observations of several shapes in one tuple."""

    def __init__(self):
        inner = spaces.Tuple([spaces.MultiBinary(2), spaces.Box(-1, 1, (1, 2))])
        self.observation_space = spaces.Tuple([spaces.Box(-1, 1, (3,)), spaces.Discrete(3), inner])
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observe(), {}

    def observe(self):
        inner = np.array([1, 0], np.int8), np.array([[0.25, -0.25]], np.float32)
        return np.full(3, 0.5, np.float32), 2, inner

    def step(self, action):
        return self.observe(), 1.0, False, True, {}


def make_stack(render_mode=None):
    return Stack()
