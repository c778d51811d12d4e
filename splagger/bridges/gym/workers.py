"""A pool whose environments run in worker processes.

The processes receive complete histories, so the results do not depend on the number of workers or on which
worker steps which environment.
"""

import pickle
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import numpy as np

from splagger.bridges.gym.gym_env import GymEnv
from splagger.bridges.gym.pool import BatchReset, BatchStep, History, Pool
from splagger.errors import EnvError, SettingError
from splagger.files.parent import end_with_parent, leave_signals_to_parent


class WorkerPool:
    """Worker processes, each with its own `Pool`; each steps a fixed share of every batch."""

    def __init__(self, source: GymEnv, episodes: int, callers: int = 1):
        try:
            pickle.dumps(source)
        except Exception as error:
            raise SettingError(
                f"{source.name}: workers need an environment that other processes can import; put "
                f"make_env and task into a module, or use workers=0 ({error})"
            ) from None
        # A process forked from one that runs JAX can hang, so spawn.
        self.processes = [
            ProcessPoolExecutor(1, get_context("spawn"), _start, (source, episodes, callers))
            for _ in range(source.workers)
        ]
        self.name, self.closed, self.answered = source.name, threading.Event(), False
        started: Future[None] = Future()
        threading.Thread(target=self._launch, args=(started,), daemon=True).start()
        started.result()

    def _launch(self, started: Future[None]) -> None:
        """Starts the processes in a thread that stays alive until `close`, as `end_with_parent` needs it.

        The caller's thread may be one of the compiled program, or one that ends with the current block.
        """
        try:
            for process in self.processes:
                process.submit(int)
        except BaseException as error:
            started.set_exception(error)
        else:
            started.set_result(None)
            self.closed.wait()

    def reset(self, seeds: np.ndarray) -> BatchReset:
        return BatchReset(*self._all("reset", (seeds,)))

    def step(self, histories: History, actions: np.ndarray, seeds: np.ndarray) -> BatchStep:
        return BatchStep(*self._all("step", (*histories, actions, seeds)))

    def render(self, history: History) -> np.ndarray:
        return self._result(self.processes[0].submit(_render, history))

    def close(self) -> None:
        for process in self.processes:
            process.shutdown()
        self.closed.set()

    def _all(self, what: str, columns: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        shares = zip(
            *(np.array_split(column, len(self.processes)) for column in columns), strict=True
        )
        futures = [
            process.submit(_serve, what, share)
            for process, share in zip(self.processes, shares, strict=True)
            if len(share[0])
        ]
        answers = [self._result(future) for future in futures]
        return [np.concatenate(parts) for parts in zip(*answers, strict=True)]

    def _result(self, future: Future[Any]) -> Any:
        try:
            answer = future.result()
            self.answered = True
            return answer
        except BrokenProcessPool:
            if not self.answered:
                raise EnvError(
                    f"{self.name}: a worker process could not start. Each one imports the program: put make_env into a "
                    "module, and what a script does under `if __name__ == '__main__':`; or use workers=0"
                ) from None
            raise EnvError(
                f"{self.name}: a worker process ended unexpectedly (killed, out of memory, or the environment "
                "ended it); fewer env.workers need less memory"
            ) from None


_pool: Any = None  # the pool of this worker process


def _start(source: GymEnv, episodes: int, callers: int) -> None:
    global _pool
    end_with_parent(grace=2.0)
    leave_signals_to_parent()
    _pool = Pool(source, episodes, callers)


def _serve(what: str, columns: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    if what == "reset":
        return tuple(_pool.reset(*columns))
    fields = len(History._fields)
    return tuple(_pool.step(History(*columns[:fields]), *columns[fields:]))


def _render(history: History) -> np.ndarray:
    return _pool.render(history)
