"""Many live environments behind pure functions of history: reset(seeds), step(histories, actions, seeds).

The state of an environment is its history: the seed of its task and the actions since. CheckedEnv environments
are a cache of it, found by the fingerprint of what they have seen; where one is missing (a run goes on in a new
process), the history is played again.
"""

import contextlib
import threading
import warnings
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from splagger.bridges.checked_env import CheckedEnv, Outcome
from splagger.bridges.gym_env import GymEnv
from splagger.errors import EnvError, SettingError


class History(NamedTuple):
    """All that happened since tasks began; leaves [B, …], the first `count` of `actions` were taken."""

    seed: np.ndarray
    actions: np.ndarray
    count: np.ndarray
    fingerprint: np.ndarray
    obs: np.ndarray


class Begun(NamedTuple):
    """The first of tasks, leaves [B, …]."""

    obs: np.ndarray
    fingerprint: np.ndarray


class Stepped(NamedTuple):
    """One step of each environment, leaves [B, …]; where a task ended, `obs`, `fingerprint` and `episode` are those
    of a new one."""

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
    """CheckedEnv environments of one kind, as many as are needed at once, and as many again for evaluation."""

    def __init__(self, source: GymEnv, episodes: int, callers: int = 1):
        self.source, self.episodes, self.callers = source, episodes, callers
        self.envs: list[CheckedEnv] = []
        self.at: dict[bytes, list[CheckedEnv]] = defaultdict(list)
        self.room, self.clock, self.warned = 0, 0, False
        self.lock = threading.Lock()  # several devices call at once

    def reset(self, seeds: np.ndarray) -> Begun:
        """New tasks, one for each seed."""
        with self._call(len(seeds)):
            begun = [self._begin(self._idle(), int(seed)) for seed in seeds]
        return Begun(*_columns(begun, (np.float32, np.uint32)))

    def step(self, histories: History, actions: np.ndarray, seeds: np.ndarray) -> Stepped:
        """One step of each; `seeds` are for the tasks that follow those that end."""
        with self._call(len(seeds)):
            rows = [
                self._advance(History(*row), np.asarray(action), int(seed))
                for row, action, seed in zip(
                    zip(*histories, strict=True), actions, seeds, strict=True
                )
            ]
        return Stepped(*_columns(rows, _STEPPED_TYPES))

    def render(self, history: History) -> np.ndarray:
        """A picture of one environment; its leaves have no batch axis."""
        with self._call(1):
            live = self._find(history) or self._replay(history)
            if live is None:
                raise SettingError(
                    f"{self.source.name} has gone on since, and cannot be drawn there"
                )
            self._keep(live)
            return live.render()

    def _advance(self, history: History, action: np.ndarray, seed: int) -> tuple:
        live = self._find(history) or self._replay(history)
        if live is None:  # the task is lost: it ends here, and a new one begins
            out = Outcome(history.obs, 0.0, False, True, True, history.obs)
            live = self._idle()
        else:
            out = live.step(action)
        obs, fingerprint = self._begin(live, seed) if out.task_done else self._keep(live, out.obs)
        ends = out.terminated, out.truncated, out.episode_done, out.task_done
        return obs, fingerprint, live.episode, out.next_obs, out.reward, *ends

    def _find(self, history: History) -> CheckedEnv | None:
        """A live environment that has seen just this."""
        here = self.at.get(history.fingerprint.tobytes())
        return self._forget(here[-1]) if here else None

    def _replay(self, history: History) -> CheckedEnv | None:
        """An environment that lives through the history again; None if it does not repeat itself."""
        live = self._idle()
        live.begin(int(history.seed))
        taken = history.actions[: int(history.count)]
        ended = [live.step(np.asarray(action)).task_done for action in taken]
        if live.fingerprint == history.fingerprint.tobytes() and not any(ended):
            return live
        self._keep(live)
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.source.name} does not repeat itself when its seed and actions are repeated: tasks "
                "that were under way cannot go on, new ones begin in their place",
                stacklevel=1,
            )
        return None

    def _begin(self, live: CheckedEnv, seed: int):
        return self._keep(live, live.begin(seed))

    def _idle(self) -> CheckedEnv:
        """An environment that nobody waits for: a new one while there is room, else the one unused longest."""
        if len(self.envs) < self.room:
            self.envs.append(CheckedEnv(self.source, self.episodes))
            return self.envs[-1]
        return self._forget(min(self.envs, key=lambda live: live.used))

    def _keep(self, live: CheckedEnv, obs: np.ndarray | None = None):
        """(obs, fingerprint); the environment can be found again."""
        self.clock += 1
        live.used = self.clock
        self.at[live.fingerprint].append(live)
        return obs, np.frombuffer(live.fingerprint, np.uint32)

    def _forget(self, live: CheckedEnv) -> CheckedEnv:
        here = self.at.get(live.fingerprint, [])
        if live in here:
            here.remove(live)
        if not here:
            self.at.pop(live.fingerprint, None)
        return live

    @contextlib.contextmanager
    def _call(self, batch: int):
        """One caller at a time. There is room for twice the largest batch: training and evaluation take
        turns, and neither may push the other out. After an error nothing is trusted any more."""
        with self.lock:
            self.room = max(self.room, 2 * batch * self.callers)
            try:
                yield
            except Exception:
                self.close()
                raise

    def close(self) -> None:
        """Ends all live environments; histories can still be played again."""
        for live in self.envs:
            with contextlib.suppress(EnvError):
                live.close()
        self.envs, self.at = [], defaultdict(list)


_STEPPED_TYPES = (np.float32, np.uint32, np.int32, np.float32, np.float32, *[np.bool_] * 4)


def _columns(rows: list[tuple], types) -> list[np.ndarray]:
    return [
        np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)
    ]
