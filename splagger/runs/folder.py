"""The run folder. Writes are atomic, and only one process writes at a time. Needs no JAX.

runs/<env>/<method>/<digest>/
  run.json        everything needed to make the run again, and its progress
  curves.csv      one row per evaluation and member
  checkpoints/    the whole training state, see `splagger.runs.checkpoints`; with copies of the two files above
  snapshots/      the agents at points of training, if asked for
  tensorboard/    the curves as event files
  progress.json   how far a run is since its last checkpoint, see `splagger.status`
  owner/          describes the process that is training here, if any, see `splagger.files.lock`
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splagger.errors import RunError, kind_of
from splagger.files.lock import Lock, LockedError, held
from splagger.files.storage import (
    remove_leftovers,
    sha256,
    unreadable,
    warn,
    write_atomically,
    writing,
)
from splagger.runs.checkpoint_files import saved_text, saved_updates
from splagger.runs.curves import CURVES, curves_path, damaged, parse_curves, read_bytes
from splagger.runs.record import RunRecord

if TYPE_CHECKING:
    import pandas

RECORD, OWNER, CHECKPOINTS, EVENTS = "run.json", "owner", "checkpoints", "tensorboard"
SNAPSHOTS = "snapshots"
PROGRESS = "progress.json"


SAVE_EVERY = 120.0  # seconds between checkpoints, unless something else is asked for


class RunFolder:
    """One experiment on disk."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock: Lock | None = None

    @property
    def exists(self) -> bool:
        try:
            return (self.path / RECORD).is_file()
        except PermissionError as error:
            raise unreadable(self.path, error) from None

    def saved_updates(self) -> list[int]:
        """Returns the updates that have a checkpoint, oldest first."""
        return saved_updates(self.path / CHECKPOINTS)

    def snapshots(self) -> list[int]:
        """Returns the updates that have a snapshot, in order."""
        return saved_updates(self.path / SNAPSHOTS)

    def record(self) -> RunRecord:
        """Reads run.json, or its copy in the newest checkpoint if that is newer or run.json is damaged."""
        path = self.path / RECORD
        try:
            record = RunRecord.from_json(path.read_text(), path)
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(f"{self.path} is not a run folder: it has no {RECORD}") from None
        except (RunError, UnicodeDecodeError, OSError) as error:
            copy = self._saved_record()
            if copy is None:
                reason = f"{path} is damaged ({error}); --force starts over"
                raise error if isinstance(error, RunError) else RunError(reason) from None
            warn(f"{path} is damaged; using its copy in the checkpoint of update {copy.update}")
            return copy
        # A process that was killed between writing a checkpoint and writing run.json leaves an older run.json.
        copy = (
            self._saved_record() if record.update < max(self.saved_updates(), default=0) else None
        )
        return copy if copy and copy.update > record.update else record

    def curves(self, columns: Sequence[str] | None = None) -> "pandas.DataFrame | None":
        """Reads curves.csv, or some of its columns; None before the first evaluation.

        The digest in run.json must match; otherwise the copy in the newest checkpoint is read.
        """
        path = curves_path(self.path)
        for _ in range(3):  # a run that is training may replace one file after the other was read
            record = self.record() if self.exists else None
            wanted = record and record.curves_sha256
            data = read_bytes(path)
            if wanted and (data is None or sha256(data) != wanted):
                data = (saved_text(self.path / CHECKPOINTS, CURVES) or "").encode()
            if not wanted or sha256(data or b"") == wanted:
                plan = record and record.plan
                return None if data is None else parse_curves(data, path, columns, plan)
        raise damaged(path, "its content is not what was written")

    def _saved_record(self) -> RunRecord | None:
        text = saved_text(self.path / CHECKPOINTS, RECORD)
        return RunRecord.from_json(text, self.path / CHECKPOINTS) if text else None

    def write_record(self, record: RunRecord) -> None:
        """Replaces run.json."""
        write_atomically(self.path / RECORD, record.to_json(), self.confirm)

    def write_curves(self, text: str) -> None:
        """Replaces curves.csv."""
        write_atomically(self.path / CURVES, text, self.confirm)

    @contextlib.contextmanager
    def locked(self, wait: int | float = 0.0) -> Iterator[None]:
        """Holds the folder's lock, on any machine that shares the folder.

        If another process holds it, a RunError is raised that names the process. It is raised at once, or after
        `wait` seconds: launchers wait, since a process that received a signal to stop may still be saving. The lock of a
        process that was killed is taken over.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            try:
                with writing(self.path, "choose another --out"):
                    self._lock = stack.enter_context(held(self.path / OWNER, wait))
            except LockedError as error:
                raise RunError(
                    f"another process is training in {self.path} ({error.holder or 'it is just starting'}); "
                    "wait for it, or choose another --out"
                ) from None
            for folder in (self.path, self.path / CHECKPOINTS, self.path / SNAPSHOTS):
                remove_leftovers(folder)
            try:
                yield
            finally:
                self._lock = None

    def confirm(self) -> None:
        """Raises a LostLockError if this object held the folder's lock and another process has taken it over."""
        if self._lock is not None:
            self._lock.check()

    def clear(self) -> None:
        """Removes everything that a run wrote, except the lock."""
        for name in (CHECKPOINTS, SNAPSHOTS, EVENTS):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in (RECORD, CURVES, f"{CURVES}.gz", PROGRESS):
            (self.path / name).unlink(missing_ok=True)


def paths_of(given: Any) -> list[Path]:
    """Returns paths of run folders: of a path, of a result of `splagger.train`, or of a list of these.

    >>> paths_of(["runs", ("a", Path("b"))])
    [PosixPath('runs'), PosixPath('a'), PosixPath('b')]
    """
    if isinstance(given, list | tuple):
        return [path for part in given for path in paths_of(part)]
    attributes = getattr(given, "attrs", None)
    given = attributes.get("folder", given) if isinstance(attributes, dict) else given
    if not isinstance(given, str | os.PathLike):
        raise RunError(
            f"a run folder must be a path or a result of splagger.train, got {kind_of(given)}"
        )
    return [Path(given)]


def find_runs(root: str | Path) -> list[RunFolder]:
    """Returns all run folders below `root`, sorted by path."""
    found = [folder for folder, _, files in walk(root) if RECORD in files]
    return [RunFolder(folder) for folder in sorted(found)]


def walk(root: str | Path, strict: bool = True) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yields (folder, names of folders in it, names of files in it) for all folders that may hold runs below `root`.

    Links are followed after all other folders, and each folder is visited once. A folder that may not be read is an
    error if `strict`.
    """

    def refuse(error: OSError):
        if strict and isinstance(error, PermissionError):
            raise unreadable(Path(error.filename), error)

    tops, visited = [str(root)], set()
    while tops:
        for name, below, files in os.walk(tops.pop(0), onerror=refuse):
            real = os.path.realpath(name)
            if real in visited:
                below.clear()
                continue
            visited.add(real)
            yield Path(name), below, files
            links = {folder for folder in below if os.path.islink(os.path.join(name, folder))}
            tops += [os.path.join(name, folder) for folder in sorted(links)]
            below[:] = sorted(set(below) - {CHECKPOINTS, SNAPSHOTS, EVENTS} - links)


def find_run(path: str | Path) -> RunFolder:
    """Returns the run folder at `path`, or the only one below it; raises a RunError that lists several."""
    if RunFolder(path).exists:
        return RunFolder(path)
    found = find_runs(path)
    if len(found) == 1:
        return found[0]
    if not found and not Path(path).exists():
        raise RunError(f"{path} is not a run folder: it does not exist")
    if not found:
        raise RunError(
            f"{path} is not a run folder: it has no {RECORD}, and no folder below it has one"
        )
    names = [str(run.path) for run in found[:8]] + ["…"] * (len(found) > 8)
    raise RunError(f"there are {len(found)} runs below {path}; choose one: {', '.join(names)}")
