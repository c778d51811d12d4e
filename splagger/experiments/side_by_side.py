"""Many experiments, one after another or several at a time.

Several programs on one GPU: while one compiles the others train, and where one waits for a step's result
another's runs. With NVIDIA's Multi-Process Service (`nvidia-cuda-mps-control -d`) their kernels run at the same time.
"""

import concurrent.futures as futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from splagger.experiments.grid import Number, Run
from splagger.experiments.records import RunFolder
from splagger.experiments.runner import Interrupted, execute


def train_all(
    runs: Sequence[Run], out: str | Path, jobs: int = 1, save_every: Number = 120.0
) -> list[RunFolder]:
    """The folders of `runs`, each trained to its end in a program of its own, `jobs` at a time.

    If one fails, those that have begun go on to their end or to Ctrl-C, and no other begins.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if jobs == 1 or len(runs) < 2:
        return [execute(run, out, save_every=save_every)[0] for run in runs]
    # No process may reserve the card for itself; they inherit this.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # A fork would inherit a JAX that cannot be forked. Each is a group of its own: Ctrl-C reaches us, and we tell them.
    pool = futures.ProcessPoolExecutor(
        min(jobs, len(runs)), multiprocessing.get_context("spawn"), initializer=os.setpgrp
    )
    with pool, _stopped_by_sigterm():
        begun = [pool.submit(_train, run.arguments(), str(out), save_every) for run in runs]
        try:
            return [RunFolder(future.result()) for future in begun]
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
            for process in multiprocessing.active_children():
                process.terminate()  # those that train save first
            raise Interrupted from None


@contextlib.contextmanager
def _stopped_by_sigterm():
    """SIGTERM is as good as Ctrl-C; outside of the main thread both are somebody else's business."""

    def stop(*_):
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _train(arguments: dict[str, Any], out: str, save_every: Number) -> Path:
    """In a process of its own: plain lines, since several tell how they are going."""
    folder, _ = execute(Run.create(**arguments), out, save_every=save_every, show="lines")
    return folder.path
