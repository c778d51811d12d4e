"""A Gymnasium environment whose every step is checked. Uses NumPy only, because it runs inside callbacks."""

import contextlib
import functools as ft
import hashlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from splagger.bridges.gym.gym_env import GymEnv, layout, layout_of
from splagger.bridges.gym.task_sampling import Options
from splagger.errors import FOREIGN_ERRORS, EnvError, cause_of, one_line

TRIAL_STEPS, TRIAL_SECONDS = 20, 0.2


class Outcome(NamedTuple):
    """The result of one step, as in `MetaStep`, and the next observation `obs` if the task continues."""

    next_obs: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    task_done: bool
    obs: np.ndarray

    @property
    def episode_done(self) -> bool:
        return self.terminated or self.truncated


class CheckedEnv:
    """An environment, its position in the current task, and a fingerprint of the task's history.

    Environments with equal fingerprints have the same history and are interchangeable. `info` is that of the last
    step or of the first reset, as the environment returned it.
    """

    def __init__(self, source: GymEnv, episodes: int, env: Any = None):
        """Plays `env`, by default a new environment of `source`."""
        self.source, self.episodes = source, episodes
        self.layout = layout(source) if env is None else layout_of(source, env)
        self.env = source.make() if env is None else env
        self.seed, self.episode, self.steps, self.fingerprint, self.used = 0, 0, 0, b"", 0
        self.options: Options = None
        self.info: Any = {}

    def reset(self, seed: int, options: Options = None) -> np.ndarray:
        """Starts the task with this seed, each episode with these options, and returns its first observation."""
        self.seed, self.episode, self.options = seed, 0, options
        obs = self._start_episode()
        self.fingerprint = _fingerprint(b"", seed.to_bytes(8, "little"), obs.tobytes())
        return self._flag(obs, False)

    def step(self, action: np.ndarray) -> Outcome:
        """Takes one step; if that ends an episode, starts the task's next episode."""
        self.steps += 1
        # An agent that diverged has no action: the environment gets another one, and training stops the agent.
        valid = np.where(np.isfinite(action), action, 0).astype(action.dtype)
        returned = self._guarded("step()", self.env.step, self.layout.action(valid))
        if not isinstance(returned, tuple) or len(returned) != 5:
            raise self._error(
                "step() must return (observation, reward, terminated, truncated, info)"
            )
        obs = self._observation(returned[0])
        reward = self._number("reward", returned[1])
        terminated = bool(self._number("terminated", returned[2]))
        cut = bool(self._number("truncated", returned[3]))
        cut = cut or self.steps >= self.layout.spec.horizon
        # An episode that terminates at its time limit is not truncated.
        truncated = cut and not terminated
        done = terminated or truncated
        task_done = done and self.episode == self.episodes - 1
        current = obs
        if done and not task_done:
            self.episode += 1
            current = self._start_episode()
        self.info = returned[4]
        self.fingerprint = _fingerprint(
            self.fingerprint, action.tobytes(), obs.tobytes() + current.tobytes()
        )
        current, obs = self._flag(current, done), self._flag(obs, done)
        return Outcome(obs, reward, terminated, truncated, task_done, current)

    def close(self) -> None:
        self._guarded("close()", self.env.close)

    def render(self) -> np.ndarray:
        """Returns an RGB image of the current state."""
        try:
            image = self._guarded("render()", self.env.render)
        except EnvError as error:
            if not isinstance(error.__cause__, NotImplementedError):
                raise
            raise EnvError(
                f"{self.source.name}: it has no render(); splagger evaluate needs no pictures, and splagger inspect "
                "has --no-pictures (draw=False in Python)"
            ) from None
        if np.ndim(image) != 3 or np.shape(image)[2] != 3:
            raise self._error(
                "render() returned no RGB image; make_env must take render_mode and pass it on"
            )
        return np.asarray(image, np.uint8)

    def _start_episode(self) -> np.ndarray:
        self.steps = 0
        start = self.source.start_episode
        returned = self._guarded("reset()", start, self.env, self.seed, self.episode, self.options)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise self._error("reset() must return (observation, info)")
        self.info = returned[1]
        return self._observation(returned[0])

    def _observation(self, raw: Any) -> np.ndarray:
        """Returns the observation as one vector, after checking its shape and that it is finite."""
        shape = self.layout.shape
        try:
            found = None if shape is None else np.shape(raw)  # parts of a tuple may differ in shape
            # Numbers beyond float32 become infinite, and are reported below.
            with np.errstate(all="ignore"):
                fits = shape is None or found == shape
                obs = np.asarray(self.layout.flatten(raw), np.float32) if fits else None
        except FOREIGN_ERRORS as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            raise self._error(f"observation does not fit its space ({reason})") from error
        if obs is None:
            raise self._error(f"observation has shape {found}, its space says {shape}")
        size = self.layout.spec.obs_size
        if obs.shape != (size,):
            raise self._error(f"observation has {obs.size} numbers, its space says {size}")
        if not np.isfinite(obs).all():
            where = int(np.flatnonzero(~np.isfinite(obs))[0])
            raise self._error(f"observation is {obs[where]} at index {where} (flattened)")
        return obs

    def _number(self, field: str, value: Any) -> float:
        try:
            number = float(np.asarray(value).item())
        except FOREIGN_ERRORS:
            raise self._error(f"{field} is {_shown(value)}, not a number") from None
        if not np.isfinite(number):
            raise self._error(f"{field} is {number}")
        return number

    def _guarded(self, what: str, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except FOREIGN_ERRORS as error:
            raise self._error(f"{what} raised {cause_of(error)}") from error

    def _error(self, problem: str) -> EnvError:
        where = f"step {self.steps} of episode {self.episode + 1}, task seed {self.seed}"
        return EnvError(f"{self.source.name}: {problem} at {where}")

    def _flag(self, obs: np.ndarray, done: bool) -> np.ndarray:
        return obs if self.episodes == 1 else np.append(obs, np.float32(done))


@ft.cache
def try_env(source: GymEnv) -> float:
    """Starts a task and takes a few steps; returns the seconds per step.

    Raises an EnvError that names the environment and what is wrong, before anything is compiled.
    """
    env = CheckedEnv(source, episodes=1)
    zero = np.asarray(env.layout.spec.space.zero())
    try:
        env.reset(0)
        started, steps = time.perf_counter(), 0
        while steps < TRIAL_STEPS and time.perf_counter() - started < TRIAL_SECONDS:
            steps += 1
            if env.step(zero).task_done:
                env.reset(steps)
        return (time.perf_counter() - started) / steps
    finally:
        with contextlib.suppress(EnvError):
            env.close()


def _shown(value: Any) -> str:
    """A value in one line, or its type if it cannot be shown."""
    try:
        return " ".join(repr(value).split())[:100]
    except FOREIGN_ERRORS:
        return f"of type {type(value).__name__}"


def _fingerprint(before: bytes, *events: bytes) -> bytes:
    return hashlib.blake2b(before + b"".join(events), digest_size=8).digest()
