"""Child processes that end when their parent does, even if the parent was killed."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1  # of prctl(2)


def end_with_parent(grace: float | None = None) -> None:
    """Sends SIGTERM to this process once its parent is gone; after `grace` more seconds the process ends at once.

    Call it first in a process that `multiprocessing` spawned; it does nothing in any other process. Two mechanisms
    work together: Linux sends the signal, and a thread waits for the end of the parent's pipe. Linux already sends
    the signal when the thread that spawned the process ends, so that thread must stay alive.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    by_kernel = _signal_by_kernel(signal.SIGTERM)

    def wait():
        parent.join()
        if not by_kernel:
            os.kill(os.getpid(), signal.SIGTERM)
        if grace is not None:
            time.sleep(grace)
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    if by_kernel and parent_is_gone():  # before the kernel knew that the signal is wanted
        os.kill(os.getpid(), signal.SIGTERM)


def leave_signals_to_parent() -> None:
    """Ignores SIGINT and SIGTERM as long as the parent lives.

    Terminals and clusters send them to all processes of a job. The parent still needs this one while it saves.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1) if parent_is_gone() else None)


def parent_is_gone() -> bool:
    """Returns whether the process that spawned this one has ended."""
    parent = multiprocessing.parent_process()
    return parent is not None and os.getppid() != parent.pid


def _signal_by_kernel(number: int) -> bool:
    """Asks the kernel for a signal at the end of the parent; returns whether that is possible here."""
    if not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(OSError, AttributeError):
        return ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0) == 0
    return False
