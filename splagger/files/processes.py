"""Processes by host and id, such that another process can tell whether they still run."""

import contextlib
import os
import socket
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Process(NamedTuple):
    """A process and its machine. Fields that a system does not provide are empty.

    - `boot`: identifies the machine since its last start.
    - `namespace`: of the process id; containers have different ones.
    - `started`: when the process began, since process ids are used again.
    """

    host: str
    pid: int
    boot: str
    namespace: str
    started: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Process:
    """Describes the calling process."""
    pid = os.getpid()
    boot = _read(_PROC / "sys/kernel/random/boot_id").strip()
    namespace = ""
    with contextlib.suppress(OSError):
        namespace = os.readlink(_PROC / "self/ns/pid")
    return Process(socket.gethostname(), pid, boot, namespace, _state(pid)[1])


def is_gone(process: Process) -> bool:
    """Whether a process certainly does not run any more: it is of this machine, and there is none like it."""
    if not _is_here(process):
        return False  # nothing is known
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False  # of another user
    state, started = _state(process.pid)
    return state in ("Z", "X") or bool(started and started != process.started)


def is_alive(process: Process) -> bool:
    """Whether a process certainly runs, or is only stopped, as by Ctrl-Z."""
    state, started = _state(process.pid) if _is_here(process) else ("", "")
    return state not in ("", "Z", "X") and started == process.started


def _is_here(process: Process) -> bool:
    """Whether a process is of this machine, since its last start, and not of another container."""
    here = this_process()
    return process[:1] + process[2:4] == here[:1] + here[2:4]


def _state(pid: int) -> tuple[str, str]:
    """Returns the state letter and the start time of a process, see proc(5); empty where unknown."""
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
