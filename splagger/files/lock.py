"""A lock that one process holds at a time, for folders that many machines share. Needs no flock.

`DIRECTORY/TOKEN` is the lock: a directory with one file, which describes its owner and has a random name.

- Acquire: a private directory with that file is renamed to DIRECTORY. The file server refuses that unless DIRECTORY is
  missing or empty, so one of several processes succeeds.
- Heartbeat: the owner touches its file every few seconds. The file server sets the time, so that clocks of machines
  do not matter.
- Takeover: the file of a dead owner is removed by its own name, which no other owner has. Then the lock is free, and
  is acquired as above. An owner on this machine is dead once its process is gone, not if it is stopped. An owner elsewhere is dead if
  its file was not touched for `LIMIT` seconds.
- Check: touching the file fails once it was removed. An owner that was paused for too long notices that it has lost
  its lock.
"""

import contextlib
import errno
import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from splagger.errors import RunError
from splagger.files.processes import Process, is_alive, is_gone, this_process

BEAT = 5.0  # seconds between heartbeats
LIMIT = 60.0  # seconds without a heartbeat after which an owner on another machine is dead
POLL = 0.5  # seconds between attempts of a process that waits
_SETTLE = 2.0  # seconds for which a lock may have no visible owner and yet refuse a new one
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST)
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


class LockedError(RunError):
    """Another process holds the lock; `holder` describes it."""

    def __init__(self, message: str, holder: "Holder | None" = None):
        super().__init__(message)
        self.holder = holder


class LostLockError(RunError):
    """This process held the lock, but another one has taken it over."""


class Holder(NamedTuple):
    """The current owner of a lock, and the seconds since its last heartbeat by the file server's clock."""

    token: str
    process: Process | None  # None if its description cannot be read
    age: float

    @property
    def is_dead(self) -> bool:
        if self.process is not None and is_alive(self.process):
            return False  # even without heartbeats: it may be stopped, and go on
        return self.age > LIMIT or (self.process is not None and is_gone(self.process))

    def __str__(self) -> str:
        return str(self.process) if self.process else "an unknown process"


class Lock:
    """A lock that this process holds."""

    def __init__(self, path: Path, token: str):
        self.path, self.file = path, path / token

    def check(self) -> None:
        """Raises a LostLockError unless this process still holds the lock. This is also a heartbeat."""
        try:
            os.utime(self.file)
        except OSError as error:
            if error.errno not in _MISSING:
                raise
            holder = find_holder(self.path)
            raise LostLockError(
                f"this process has lost {self.path.parent}: it sent no heartbeat for {LIMIT:g} s, and "
                f"{holder or 'another process'} took over. It stops here and writes nothing more"
            ) from None


@contextlib.contextmanager
def held(path: Path, wait: int | float = 0.0) -> Iterator[Lock]:
    """Holds the lock `path` inside a `with` block; its parent folder must exist.

    If another process holds it, a LockedError is raised after `wait` seconds. A lock whose owner is dead is taken
    over.
    """
    token = _acquire(path, wait)
    stopped = threading.Event()
    threading.Thread(target=_beat, args=(path / token, stopped), daemon=True).start()
    try:
        yield Lock(path, token)
    finally:
        stopped.set()
        with contextlib.suppress(OSError):  # lost, or the file server is gone
            (path / token).unlink()
            path.rmdir()


def find_holder(path: Path, now: float | None = None) -> Holder | None:
    """Returns the owner of a lock, dead or alive; None if it is free.

    `now` is the file server's time; the default is this machine's.
    """
    try:
        names = [name for name in os.listdir(path) if not name.startswith(".")]
        if not names:
            return None
        # Opening a file makes NFS ask the server for its current times; `os.stat` may return cached ones.
        with open(path / names[0], "rb") as handle:
            text, seen = handle.read(), os.fstat(handle.fileno()).st_mtime
    except OSError as error:
        if error.errno not in _MISSING:
            raise
        return None
    age = (time.time() if now is None else now) - seen
    return Holder(names[0], _parse(text), age)


def _acquire(path: Path, wait: int | float) -> str:
    """Waits for the lock; returns the token of this process in it."""
    token = secrets.token_hex(8)
    candidate = path.with_name(f".{path.name}.{token}")
    started = free = time.monotonic()
    try:
        while True:
            now = _prepare(candidate, token)
            if _enter(candidate, path, token):
                _remove_leftovers(path, now)
                return token
            holder = find_holder(path, now)
            if holder is not None:
                free = time.monotonic()
                if holder.is_dead:
                    (path / holder.token).unlink(missing_ok=True)  # another may be faster
                    continue
            else:  # released just now, or the file server still shows remains of a removed file
                with contextlib.suppress(OSError):
                    path.rmdir()
            waited = time.monotonic()
            if waited - started >= wait and (holder or waited - free > _SETTLE):
                raise LockedError(f"{holder or 'another process'} holds {path}", holder)
            time.sleep(POLL if holder else POLL / 50)
    finally:
        shutil.rmtree(candidate, ignore_errors=True)


def _prepare(candidate: Path, token: str) -> float:
    """Makes the private directory, or touches it and its file; returns the file server's time."""
    file = candidate / token
    try:
        os.utime(file)
    except FileNotFoundError:
        candidate.mkdir(exist_ok=True)
        file.write_text(json.dumps(this_process()._asdict()))
    os.utime(candidate)
    return file.stat().st_mtime


def _enter(candidate: Path, path: Path, token: str) -> bool:
    """Tries to make the private directory the lock. A lost reply of the server may turn success into an error."""
    try:
        os.rename(candidate, path)
    except OSError as error:
        if (path / token).exists():
            return True
        if error.errno not in (*_OCCUPIED, *_MISSING):
            raise
        return False
    return True


def _remove_leftovers(path: Path, now: float) -> None:
    """Removes the private directories of processes that were killed while they waited."""
    for candidate in path.parent.glob(f".{path.name}.*"):
        with contextlib.suppress(OSError):
            if now - candidate.stat().st_mtime > LIMIT:
                shutil.rmtree(candidate)


def _beat(file: Path, stopped: threading.Event) -> None:
    while not stopped.wait(BEAT):
        try:
            os.utime(file)
        except FileNotFoundError:
            return
        except OSError:  # the file server may come back
            continue


def _parse(text: bytes) -> Process | None:
    try:
        data = json.loads(text)
        return Process(*(kind(data[name]) for name, kind in Process.__annotations__.items()))
    except (ValueError, TypeError, KeyError):
        return None
