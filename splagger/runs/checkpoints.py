"""Checkpoints, from which training continues, and snapshots, the agents at points of training.

Both hold all members of a run, as named arrays under digests.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splagger.errors import RunError, one_line
from splagger.files.array_file import read_arrays, write_arrays
from splagger.files.storage import warn
from splagger.runs.checkpoint_files import checkpoint_path, remove_superseded
from splagger.runs.curves import CURVES
from splagger.runs.folder import CHECKPOINTS, RECORD, SNAPSHOTS, RunFolder
from splagger.runs.named_arrays import from_named_leaves, named_leaves, named_shapes
from splagger.runs.record import RunRecord

# Arrays that had other names in checkpoints of version 0.1: (new prefix, old prefix).
RENAMED = (
    ("actors.env.fingerprint", "life.env.mark"),
    ("actors.", "life."),
    ("optimizers.reconstruction", "optimizers.explanation"),
)


class Checkpoint(NamedTuple):
    """A restored checkpoint. Those of older versions have neither a record nor curves."""

    update: int
    state: Any
    record: RunRecord | None = None
    curves: str | None = None


class Snapshot(NamedTuple):
    """The agents of all members; leaves have a leading member axis."""

    agent: Any
    normalizers: Any


def save_checkpoint(
    folder: RunFolder, update: int, state: Any, record: RunRecord | None = None, curves: str = ""
) -> None:
    """Writes a checkpoint atomically, then removes all but this and the one before it."""
    path = folder.path / CHECKPOINTS
    path.mkdir(parents=True, exist_ok=True)
    texts = {RECORD: record.to_json(), CURVES: curves} if record else {}
    stored = {name: np.frombuffer(text.encode(), np.uint8) for name, text in texts.items()}
    write_arrays(checkpoint_path(path, update), stored | named_leaves(state), folder.confirm)
    remove_superseded(path, update)


def restore_checkpoint(
    folder: RunFolder, example: Any, note: Callable[[str], None] = warn
) -> Checkpoint | None:
    """Returns the newest intact checkpoint, or None if there is none at all; `example` gives structure and shapes.

    Damaged checkpoints are reported by `note`; if all are damaged, a RunError is raised. Nothing is changed.
    """
    failure, reason = None, ""
    for update in reversed(folder.saved_updates()):
        path = checkpoint_path(folder.path / CHECKPOINTS, update)
        try:
            found = _read(path, update, example)
        except Exception as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            failure = error
            continue
        if failure is not None:
            note(
                f"a newer checkpoint than {path} is damaged ({reason}); using the one of update {update}"
            )
        return found
    if failure is None:
        return None
    raise RunError(
        f"no checkpoint in {folder.path / CHECKPOINTS} can be read ({reason}); they are damaged or belong "
        "to another version. Nothing was changed; --force starts the run over"
    ) from failure


def save_snapshot(folder: RunFolder, update: int, state: Any) -> None:
    """Writes the agents after an update: the part of a training state that acts, or of its named arrays."""
    path = folder.path / SNAPSHOTS
    path.mkdir(parents=True, exist_ok=True)
    leaves = named_leaves(state, tuple(f"{name}." for name in Snapshot._fields))
    write_arrays(checkpoint_path(path, update), leaves, folder.confirm)


def restore_snapshot(folder: RunFolder, update: int, example: Any) -> Snapshot:
    """Returns the agents after an update; `example` gives structure and shapes of a training state."""
    path = checkpoint_path(folder.path / SNAPSHOTS, update)
    wanted = Snapshot(example.agent, example.normalizers)
    try:
        return from_named_leaves(wanted, read_arrays(path, named_shapes(wanted)))
    except (OSError, ValueError) as error:
        raise RunError(
            f"{path} is damaged or belongs to another version ({one_line(error)}); load another snapshot"
        ) from error


def snapshot_size(example: Any) -> int:
    """Returns the bytes of a snapshot of such a training state."""
    shapes = named_shapes(Snapshot(example.agent, example.normalizers))
    return sum(array.nbytes for array in shapes.values())


def remove_snapshots(folder: RunFolder, updates: Iterable[int]) -> None:
    """Removes the snapshots of these updates."""
    for update in updates:
        checkpoint_path(folder.path / SNAPSHOTS, update).unlink(missing_ok=True)


def _read(path: Path, update: int, example: Any) -> Checkpoint:
    shapes = named_shapes(example)
    if path.is_dir():
        return Checkpoint(update, from_named_leaves(example, _read_orbax(path, shapes)))
    arrays = read_arrays(path, [RECORD, CURVES, *shapes])
    texts = {n: arrays.pop(n).tobytes().decode() for n in (RECORD, CURVES) if n in arrays}
    record = RunRecord.from_json(texts[RECORD], path) if RECORD in texts else None
    return Checkpoint(update, from_named_leaves(example, arrays), record, texts.get(CURVES))


def _read_orbax(source: Path, shapes: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a checkpoint of version 0.1, by their current names."""
    try:
        import orbax.checkpoint as ocp
    except ImportError:
        raise RunError(
            "it was written by version 0.1; reading it needs `pip install orbax-checkpoint`"
        ) from None
    source = source.absolute()
    is_old = "'life." in (source / "_METADATA").read_text()
    stored = {name: _old_name(name) if is_old else name for name in shapes}
    with ocp.StandardCheckpointer() as checkpointer:
        found = checkpointer.restore(source, {stored[name]: s for name, s in shapes.items()})
    return {name: found[stored[name]] for name in shapes}


def _old_name(name: str) -> str:
    for new, old in RENAMED:
        if name.startswith(new):
            return old + name.removeprefix(new)
    return name
