"""Checkpoints: the whole training state of all members of a run, as named arrays (Orbax)."""

import shutil
from pathlib import Path
from typing import Any

from splagger.errors import RunError
from splagger.runs.folder import CHECKPOINTS, RunFolder
from splagger.runs.named_arrays import from_named_leaves, named_leaves, named_shapes

# Arrays that had other names in checkpoints of version 0.1: (new prefix, old prefix).
RENAMED = (
    ("actors.env.fingerprint", "life.env.mark"),
    ("actors.", "life."),
    ("optimizers.reconstruction", "optimizers.explanation"),
)


def saved_updates(folder: RunFolder) -> list[int]:
    """Returns the updates that have a complete checkpoint, oldest first."""
    path = folder.path / CHECKPOINTS
    names = [p.name for p in path.iterdir()] if path.is_dir() else []
    return sorted(int(name) for name in names if name.isdigit())


def save_checkpoint(folder: RunFolder, update: int, state: Any) -> None:
    """Writes a checkpoint atomically, then removes older ones.

    An existing checkpoint of the same update holds the same state and is kept.
    """
    import orbax.checkpoint as ocp

    if update in saved_updates(folder):
        return
    path = folder.path / CHECKPOINTS
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save((path / str(update)).absolute(), named_leaves(state))
            checkpointer.wait_until_finished()
    except ValueError as error:  # Orbax reports a full disk in this way
        raise OSError(str(error)) from error
    for old in saved_updates(folder):
        if old != update:
            shutil.rmtree(path / str(old), ignore_errors=True)
    for leftover in path.glob("*.orbax-checkpoint-tmp*"):
        shutil.rmtree(leftover, ignore_errors=True)


def restore_checkpoint(folder: RunFolder, example: Any) -> tuple[int, Any] | None:
    """Returns (update, state) of the newest checkpoint, or None; `example` gives structure and shapes."""
    updates = saved_updates(folder)
    if not updates:
        return None
    source = (folder.path / CHECKPOINTS / str(updates[-1])).absolute()
    try:
        return updates[-1], from_named_leaves(example, _read(source, named_shapes(example)))
    except Exception as error:
        summary = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise RunError(
            f"the checkpoint {source} cannot be read ({summary}); it is damaged or belongs to another "
            "version. Nothing was changed; --force starts the run over"
        ) from error


def _read(source: Path, shapes: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a checkpoint by their current names."""
    import orbax.checkpoint as ocp

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
