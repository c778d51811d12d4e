"""Experiments on this machine, one after another or several at a time.

Several programs can share a GPU: while one compiles or waits between kernels, the others compute. With NVIDIA's
Multi-Process Service (MPS, `nvidia-cuda-mps-control -d`) their kernels run at the same time.
"""

import concurrent.futures as futures
import contextlib
import math
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splagger.envs import Cheetah, Walker
from splagger.envs.mujoco.simulations import THREADS, threads
from splagger.errors import DivergedError, Interrupted, RunError, SettingError
from splagger.files.parent import end_with_parent, parent_is_gone
from splagger.files.storage import print_any_text
from splagger.launchers.mps import mps_is_running
from splagger.launchers.protocol import check_names, finished, has_a_name
from splagger.runs.folder import RunFolder
from splagger.runs.run import Number, Run
from splagger.training.capacity import check_largest
from splagger.training.runner import execute

PROGRAMS = 3  # that share a GPU
ROBOT_PROGRAMS = 3 / 8  # per core; six programs keep 16 cores busy


@dataclass(frozen=True)
class Local:
    """Trains on this machine.

    - `jobs`: experiments at a time; by default as many as `jobs_that_pay`. One at a time trains in this process.
    """

    jobs: int | None = None

    def __post_init__(self):
        if self.jobs is not None and self.jobs < 1:
            raise SettingError(f"jobs must be at least 1, got {self.jobs}")
        if mps_is_running() if self.jobs is None else self.jobs > 1:
            # By default, each process reserves most of the GPU's memory, also this one as soon as JAX starts in it.
            # Child processes inherit the setting.
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

    def launch(self, runs: Sequence[Run], out: Path, save_every: Number) -> Iterator[RunFolder]:
        """Trains all runs; yields their folders as they finish.

        If a run fails, those that have started continue until they end or until Ctrl-C, and no other run starts.
        """
        jobs = min(jobs_that_pay(runs) if self.jobs is None else self.jobs, len(runs))
        if jobs > 1:
            yield from _side_by_side(runs, jobs, out, save_every)
            return
        check_largest([run for run in runs if not RunFolder(run.folder(out)).exists])
        results = (lambda run=run: execute(run, out, save_every=save_every)[0] for run in runs)
        yield from finished(results, despite=DivergedError)


def _side_by_side(
    runs: Sequence[Run], jobs: int, out: Path, save_every: Number
) -> Iterator[RunFolder]:
    """Trains `jobs` runs at a time, each in its own process."""
    check_names(runs)
    # JAX cannot be forked. Each child has its own process group: Ctrl-C reaches this process only, which then
    # terminates the children.
    context = multiprocessing.get_context("spawn")
    started, ending = context.Event(), context.Event()
    pool = futures.ProcessPoolExecutor(
        jobs,
        context,
        initializer=_start_child,
        initargs=(threads_each(jobs), started, ending),
    )
    with pool, stopped_by_signals():
        submitted = [pool.submit(_train, run.arguments(), str(out), save_every) for run in runs]
        ends = futures.as_completed(submitted)
        try:
            results = (lambda one=future: RunFolder(one.result()) for future in ends)
            yield from finished(results, despite=DivergedError)
        except BrokenProcessPool:
            ending.set()
            if not started.is_set():
                raise RunError(
                    "a training process could not start. Each one imports the program: what a script does belongs under "
                    "`if __name__ == '__main__':`; or use jobs=1"
                ) from None
            raise RunError(
                "a training process was killed, perhaps because the machine ran out of memory; fewer --jobs need "
                "less; the same command continues each run from its last checkpoint"
            ) from None
        except BaseException as error:
            ending.set()  # the pool hands out runs ahead, which cannot be canceled
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
            for process in multiprocessing.active_children():
                process.terminate()  # those that train save first
            raise Interrupted(
                "stopped; the same command continues each run from its last checkpoint"
            ) from None


def jobs_that_pay(runs: Sequence[Run]) -> int:
    """Returns how many experiments at a time are fastest: several if they share a GPU by MPS, otherwise one.

    On an H200, three programs at a time train 1.3 times as fast as one. Robots are simulated by the cores, which wait
    while a program learns. Other processes can train only what they can find by its name.
    """
    if not mps_is_running() or not all(map(has_a_name, runs)):
        return 1
    robots = all(isinstance(run.row.env, Cheetah | Walker) for run in runs)
    return max(PROGRAMS, int(ROBOT_PROGRAMS * threads())) if robots else PROGRAMS


def threads_each(jobs: int) -> int:
    """Returns the number of threads with which each job simulates robots; SPLAGGER_THREADS, if it is set.

    Otherwise there are half as many threads again as cores, because a job that learns leaves its cores to the others.
    """
    return threads() if os.environ.get(THREADS) else math.ceil(1.5 * threads() / jobs)


# Set when no other run may start: one has failed, or the sweep was stopped.
_ending: Any = None


def _start_child(threads: int, started: Any, ending: Any) -> None:
    """Gives a child its own process group, and lets it stop as by SIGTERM if its parent is killed."""
    global _ending
    os.setpgrp()
    end_with_parent()
    os.environ[THREADS] = str(threads)
    print_any_text()
    _ending = ending
    started.set()


@contextlib.contextmanager
def stopped_by_signals():
    """SIGTERM and Ctrl-C raise KeyboardInterrupt. Does nothing outside of the main thread, which handles signals."""

    def stop(*_):
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _train(arguments: dict[str, Any], out: str, save_every: Number) -> Path:
    """Trains in a child process; progress is printed as plain lines, since several processes print at once."""
    if _ending is not None and _ending.is_set():
        raise Interrupted("not started, because another run has failed or was stopped")
    try:
        folder, _ = execute(Run.create(**arguments), out, save_every=save_every, show="lines")
    except Interrupted as error:
        if _ending is not None:
            _ending.set()
        if error.abandoned:
            print(error, flush=True)
            os._exit(130)  # without waiting for the computation
        raise
    finally:
        if parent_is_gone():  # nobody waits for the result, and no other run may start
            os._exit(130)
    return folder.path
