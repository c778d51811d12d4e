"""A pool of environments behind pure functions of their histories.

An environment's state is its history: the seed of its task and the actions so far. The pool is a cache of
environments, indexed by the fingerprints of their histories. If an environment is missing, for example because
a run was resumed in a new process, the pool replays its history.
"""

import contextlib
import threading
import warnings
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from splagger.bridges.gym.checked_env import CheckedEnv, Outcome
from splagger.bridges.gym.gym_env import GymEnv
from splagger.errors import EnvError, SettingError


class History(NamedTuple):
    """The histories of a batch of tasks, leaves [B, …]; only the first `count` actions have been taken."""

    seed: np.ndarray
    actions: np.ndarray
    count: np.ndarray
    fingerprint: np.ndarray
    obs: np.ndarray


class BatchReset(NamedTuple):
    """The first observations of a batch of tasks, leaves [B, …]."""

    obs: np.ndarray
    fingerprint: np.ndarray


class BatchStep(NamedTuple):
    """One step of each environment, leaves [B, …].

    Where a task ended, `obs`, `fingerprint` and `episode` belong to the next task.
    """

    obs: np.ndarray
    fingerprint: np.ndarray
    episode: np.ndarray
    next_obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    episode_done: np.ndarray
    task_done: np.ndarray


class Pool:
    """The environments of one process: twice the largest batch, for training and for evaluation."""

    def __init__(self, source: GymEnv, episodes: int, callers: int = 1):
        self.source, self.episodes, self.callers = source, episodes, callers
        self.envs: list[CheckedEnv] = []
        self.by_fingerprint: dict[bytes, list[CheckedEnv]] = defaultdict(list)
        self.capacity, self.clock, self.warned = 0, 0, False
        self.lock = threading.Lock()  # several devices may call at once

    def reset(self, seeds: np.ndarray) -> BatchReset:
        """Starts one task per seed."""
        with self._call(len(seeds)):
            rows = [self._reset(self._idle(), int(seed)) for seed in seeds]
        return BatchReset(*_columns(rows, (np.float32, np.uint32)))

    def step(self, histories: History, actions: np.ndarray, seeds: np.ndarray) -> BatchStep:
        """Takes one step in each environment; where a task ends, starts the task of the given seed."""
        with self._call(len(seeds)):
            rows = [
                self._advance(History(*row), np.asarray(action), int(seed))
                for row, action, seed in zip(
                    zip(*histories, strict=True), actions, seeds, strict=True
                )
            ]
        return BatchStep(*_columns(rows, _STEP_TYPES))

    def render(self, history: History) -> np.ndarray:
        """Returns an image of one environment; the leaves of `history` have no batch axis."""
        with self._call(1):
            env = self._find(history) or self._replay(history)
            if env is None:
                raise SettingError(
                    f"{self.source.name} cannot be drawn: it cannot return to an earlier state"
                )
            self._keep(env)
            return env.render()

    def _advance(self, history: History, action: np.ndarray, seed: int) -> tuple:
        env = self._find(history) or self._replay(history)
        if env is None:  # the task is lost: truncate it and start a new one
            out = Outcome(history.obs, 0.0, False, True, True, history.obs)
            env = self._idle()
        else:
            out = env.step(action)
        obs, fingerprint = self._reset(env, seed) if out.task_done else self._keep(env, out.obs)
        ends = out.terminated, out.truncated, out.episode_done, out.task_done
        return obs, fingerprint, env.episode, out.next_obs, out.reward, *ends

    def _find(self, history: History) -> CheckedEnv | None:
        """Takes an environment with this history from the cache; returns None if there is none."""
        found = self.by_fingerprint.get(history.fingerprint.tobytes())
        return self._forget(found[-1]) if found else None

    def _replay(self, history: History) -> CheckedEnv | None:
        """Replays the history in an idle environment; returns None if that leads to another history."""
        env = self._idle()
        env.reset(int(history.seed))
        taken = history.actions[: int(history.count)]
        ended = [env.step(np.asarray(action)).task_done for action in taken]
        if env.fingerprint == history.fingerprint.tobytes() and not any(ended):
            return env
        self._keep(env)
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.source.name} is not deterministic given its seed and actions: unfinished tasks cannot "
                "continue, and new tasks replace them",
                stacklevel=1,
            )
        return None

    def _reset(self, env: CheckedEnv, seed: int):
        return self._keep(env, env.reset(seed))

    def _idle(self) -> CheckedEnv:
        """Returns a new environment while there is capacity, else the least recently used one."""
        if len(self.envs) < self.capacity:
            self.envs.append(CheckedEnv(self.source, self.episodes))
            return self.envs[-1]
        return self._forget(min(self.envs, key=lambda env: env.used))

    def _keep(self, env: CheckedEnv, obs: np.ndarray | None = None):
        """Puts the environment into the cache and returns (obs, fingerprint)."""
        self.clock += 1
        env.used = self.clock
        self.by_fingerprint[env.fingerprint].append(env)
        return obs, np.frombuffer(env.fingerprint, np.uint32)

    def _forget(self, env: CheckedEnv) -> CheckedEnv:
        """Removes the environment from the cache and returns it."""
        same = self.by_fingerprint.get(env.fingerprint, [])
        if env in same:
            same.remove(env)
        if not same:
            self.by_fingerprint.pop(env.fingerprint, None)
        return env

    @contextlib.contextmanager
    def _call(self, batch: int):
        """Lets one caller in at a time and closes all environments after an error.

        The capacity is twice the largest batch, because training and evaluation alternate and neither may
        evict the other's environments.
        """
        with self.lock:
            self.capacity = max(self.capacity, 2 * batch * self.callers)
            try:
                yield
            except Exception:
                self.close()
                raise

    def close(self) -> None:
        """Closes all environments; histories can still be replayed."""
        for env in self.envs:
            with contextlib.suppress(EnvError):
                env.close()
        self.envs, self.by_fingerprint = [], defaultdict(list)


_STEP_TYPES = (np.float32, np.uint32, np.int32, np.float32, np.float32, *[np.bool_] * 4)


def _columns(rows: list[tuple], types) -> list[np.ndarray]:
    return [
        np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)
    ]
