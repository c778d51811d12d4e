"""Launching many experiments, one after another or several at a time.

Several programs can share a GPU: while one compiles or waits between kernels, the others compute. With NVIDIA's
Multi-Process Service (`nvidia-cuda-mps-control -d`) their kernels run at the same time.
"""

import concurrent.futures as futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from splagger.bridges.parent import end_with_parent, parent_is_gone
from splagger.errors import DivergedError, Interrupted, SettingError
from splagger.runs.folder import SAVE_EVERY, RunFolder
from splagger.runs.run import Number, Run
from splagger.training.capacity import check_largest
from splagger.training.runner import execute


def train_all(
    runs: Sequence[Run], out: str | Path, jobs: int = 1, save_every: Number = SAVE_EVERY
) -> list[RunFolder]:
    """Trains `jobs` runs at a time, each as a separate program; returns their folders.

    If a run fails, those that have started continue until they end or until Ctrl-C, and no other run starts.
    A run whose members all diverge does not stop the others; its error is raised at the end.
    """
    if jobs < 1:
        raise SettingError(f"jobs must be at least 1, got {jobs}")
    if jobs == 1 or len(runs) < 2:
        check_largest([run for run in runs if not RunFolder(run.folder(out)).exists])
        return _all([lambda run=run: execute(run, out, save_every=save_every)[0] for run in runs])
    # By default, each process would reserve most of the GPU's memory. Child processes inherit this setting.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # JAX cannot be forked. Each child has its own process group: Ctrl-C reaches this process only, which then
    # terminates the children.
    pool = futures.ProcessPoolExecutor(
        min(jobs, len(runs)), multiprocessing.get_context("spawn"), initializer=_start_child
    )
    with pool, _stopped_by_signals():
        submitted = [pool.submit(_train, run.arguments(), str(out), save_every) for run in runs]
        try:
            return _all([lambda one=future: RunFolder(one.result()) for future in submitted])
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
            for process in multiprocessing.active_children():
                process.terminate()  # those that train save first
            raise Interrupted(
                "stopped; the same command continues each run from its last checkpoint"
            ) from None


def _all(results: Sequence[Callable[[], RunFolder]]) -> list[RunFolder]:
    """Returns all results. Waits for all of them before it raises that members of some run all diverged."""
    folders, diverged = [], []
    for result in results:
        try:
            folders.append(result())
        except DivergedError as error:
            diverged.append(error)
    if diverged:
        raise DivergedError(" | ".join(map(str, diverged)))
    return folders


def _start_child() -> None:
    """Gives a child its own process group, and lets it stop as by SIGTERM if its parent is killed."""
    os.setpgrp()
    end_with_parent()


@contextlib.contextmanager
def _stopped_by_signals():
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
    try:
        folder, _ = execute(Run.create(**arguments), out, save_every=save_every, show="lines")
    except Interrupted as error:
        if error.abandoned:
            print(error, flush=True)
            os._exit(130)  # without waiting for the computation
        raise
    finally:
        if parent_is_gone():  # nobody waits for the result, and no other run may start
            os._exit(130)
    return folder.path
