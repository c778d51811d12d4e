"""progress.json: how far a run is between two checkpoints, on which machine, and why it ended."""

import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from splagger.errors import Interrupted, one_line
from splagger.files.lock import LostLockError
from splagger.files.processes import Process, this_process
from splagger.files.storage import write_atomically
from splagger.runs.folder import PROGRESS, RunFolder

EVERY = 5.0  # seconds between two writes
COMPILING, TRAINING, FINISHED, INTERRUPTED, FAILED = (
    "compiling",
    "training",
    "finished",
    "interrupted",
    "failed",
)
_RECENT = 0.3  # weight of the newest block in the average speed


@dataclass(frozen=True)
class Progress:
    """The state of a run.

    - `phase`: "compiling", "training", "finished", "interrupted" or "failed".
    - `updates`: the number of updates at the end of training.
    - `frames_per_second`: of all members together, averaged over the last blocks.
    - `frames_left`: of all members together.
    - `reason`: why the run was interrupted or failed.
    """

    host: str = ""
    pid: int = 0
    phase: str = COMPILING
    update: int = 0
    updates: int = 0
    frames_per_second: float | int | None = None
    frames_left: float | int | None = None
    reason: str = ""


@dataclass
class Reporter:
    """Writes progress.json of the run that this process trains, inside a `with` block.

    An error that ends the block is recorded as the reason. A process that has lost the folder writes nothing.
    """

    folder: RunFolder
    updates: int
    update: int = 0
    every: float = EVERY
    process: Process = field(default_factory=this_process)

    def __post_init__(self):
        host, pid = self.process.host, self.process.pid
        self.progress = Progress(host, pid, COMPILING, self.update, self.updates)
        self.written = -self.every

    def __enter__(self) -> "Reporter":
        self._write()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, LostLockError):
            return
        stopped = isinstance(error, Interrupted | KeyboardInterrupt | SystemExit)
        phase = FINISHED if error is None else INTERRUPTED if stopped else FAILED
        reason = "" if error is None else one_line(error)
        reason = "stopped at once" if isinstance(error, KeyboardInterrupt) else reason
        self._write(phase=phase, reason=reason)

    def show(self, update: int, frames_per_second: float, frames_left: float | int) -> None:
        """Records a block of updates; writes at most once in `every` seconds."""
        before = self.progress.frames_per_second or frames_per_second
        speed = (1 - _RECENT) * before + _RECENT * frames_per_second
        self.progress = replace(
            self.progress,
            phase=TRAINING,
            update=update,
            frames_per_second=round(speed, 1),
            frames_left=frames_left,
        )
        if time.monotonic() - self.written >= self.every:
            self._write()

    def _write(self, **changes: Any) -> None:
        self.progress = replace(self.progress, **changes)
        self.written = time.monotonic()
        try:
            text = json.dumps(asdict(self.progress)) + "\n"
            write_atomically(self.folder.path / PROGRESS, text, self.folder.confirm)
        except OSError:  # a full disk must not end a run that has nothing to save yet
            return


def read_progress(folder: Path) -> tuple[Progress, float] | None:
    """Returns the progress of a run and when it was written; None if there is none, or if it is damaged."""
    try:
        with open(folder / PROGRESS, "rb") as handle:
            data, written = json.load(handle), Path(handle.name).stat().st_mtime
        known = {name: data[name] for name in Progress.__dataclass_fields__}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return (Progress(**known), written) if _is_valid(known) else None


def _is_valid(data: dict[str, Any]) -> bool:
    numbers = [data["pid"], data["update"], data["updates"]]
    numbers += [data[n] for n in ("frames_per_second", "frames_left") if data[n] is not None]
    texts = data["host"], data["phase"], data["reason"]
    return all(type(n) in (int, float) and n == n for n in numbers) and all(
        isinstance(text, str) and text.isprintable() for text in texts
    )
