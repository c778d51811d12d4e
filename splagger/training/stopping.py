"""Stopping: a signal is obeyed within seconds, however long a block of updates takes."""

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from splagger.training.compiler import in_other_threads
from splagger.training.progress import Silent

# Seconds that a running block may still take after a stop request. Clusters kill a job 30 seconds after SIGTERM.
PATIENCE = 8.0


class AbandonedError(Exception):
    """Raised after a stop request if the running computation takes too long; its result is lost."""


class StopRequest:
    """Records SIGINT and SIGTERM inside a `with` block. If SIGINT comes second, it raises KeyboardInterrupt.

    A second SIGTERM changes nothing: clusters may send several, and kill a process that they do not wait for.
    """

    def __init__(self, view: Silent, patience: float = PATIENCE):
        self.view, self.patience = view, patience
        self.time: float | None = None  # when the stop was requested
        self.previous: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        return self.time is not None

    def __enter__(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.previous[number] = signal.signal(number, self._request)
            except ValueError:  # not in the main thread: signals cannot be handled here
                return self
        return self

    def __exit__(self, *_):
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _request(self, number, frame):
        if self.requested:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        self.time = time.monotonic()
        self.view.note(
            f"stopping: waiting up to {self.patience:g} s for this block of updates, to save it; "
            "interrupt again to stop at once"
        )

    def call(self, function: Callable[..., Any], *args: Any, worthwhile: bool = True) -> Any:
        """Calls `function` in a thread with the same settings of JAX, so that the main thread can handle signals meanwhile.

        After a stop request it is waited for as long as `patience` says, or not at all if its result would not
        be `worthwhile` by then. Then AbandonedError is raised, and the thread keeps running.
        """
        function = in_other_threads(function)
        done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def work():
            try:
                done.put((function(*args), None))
            except BaseException as error:
                done.put((None, error))

        threading.Thread(target=work, daemon=True).start()
        while True:
            with contextlib.suppress(queue.Empty):
                result, error = done.get(timeout=0.2)
                break
            if self.time is not None:
                waited = time.monotonic() - self.time
                if waited > self.patience or not worthwhile:
                    raise AbandonedError
        if error is not None:
            raise error
        return result
