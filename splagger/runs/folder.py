"""The run folder. Writes are atomic, and only one process writes at a time. Needs no JAX.

runs/<env>/<method>/<digest>/
  run.json        everything needed to make the run again, and its progress
  curves.csv      one row per evaluation and member
  checkpoints/    the whole training state (Orbax), see `splagger.runs.checkpoints`
  tensorboard/    the curves as event files
"""

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path

from splagger.errors import RunError
from splagger.runs.curves import CURVES
from splagger.runs.record import RunRecord
from splagger.runs.storage import write_atomically

RECORD, LOCK, CHECKPOINTS, EVENTS = "run.json", "lock", "checkpoints", "tensorboard"


SAVE_EVERY = 120.0  # seconds between checkpoints, unless something else is asked for


class RunFolder:
    """One experiment on disk."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        return (self.path / RECORD).is_file()

    def record(self) -> RunRecord:
        """Reads run.json."""
        path = self.path / RECORD
        try:
            return RunRecord.from_json(path.read_text(), path)
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(f"{self.path} is not a run folder: it has no {RECORD}") from None
        except UnicodeDecodeError as error:
            raise RunError(f"{path} is damaged ({error}); --force starts over") from None

    def write_record(self, record: RunRecord) -> None:
        """Replaces run.json."""
        write_atomically(self.path / RECORD, record.to_json())

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the folder's lock; raises a RunError if another process holds it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / LOCK, "a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(
                    f"another process is training in {self.path}; wait for it, or choose another --out"
                ) from None
            yield

    def clear(self) -> None:
        """Removes everything that a run wrote, except the lock."""
        for name in (CHECKPOINTS, EVENTS):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in (RECORD, CURVES, f"{CURVES}.gz"):
            (self.path / name).unlink(missing_ok=True)


def find_runs(root: str | Path) -> list[RunFolder]:
    """Returns all run folders below `root`, sorted by path."""
    return [RunFolder(path.parent) for path in sorted(Path(root).glob(f"**/{RECORD}"))]
