"""The files of a run's checkpoints: which there are, and the texts in them. Needs no JAX.

A checkpoint is one file, which is written atomically. It holds the whole training state, run.json and curves.csv of
one moment, so nothing that belongs together can be lost apart. run.json and curves.csv of the run folder are copies.
"""

import shutil
from pathlib import Path

from splagger.files.array_file import DamagedFileError, read_arrays

SUFFIX = ".safetensors"
KEPT = 2  # checkpoints: if the newest is damaged, the one before it is used


def checkpoint_path(checkpoints: Path, update: int) -> Path:
    """Returns the path of a checkpoint: a file, or a folder that an older version wrote with Orbax."""
    folder = checkpoints / str(update)
    return folder if folder.is_dir() else checkpoints / f"{update}{SUFFIX}"


def saved_updates(checkpoints: Path) -> list[int]:
    """Returns the updates that have a checkpoint, oldest first."""
    paths = checkpoints.iterdir() if checkpoints.is_dir() else ()
    names = {path.name.removesuffix(SUFFIX) for path in paths if path.suffix in ("", SUFFIX)}
    return sorted(int(name) for name in names if name.isdigit())


def saved_text(checkpoints: Path, name: str) -> str | None:
    """Returns the copy of run.json or curves.csv in the newest checkpoint that has one and is intact."""
    for update in reversed(saved_updates(checkpoints)):
        path = checkpoint_path(checkpoints, update)
        if path.is_file():
            try:
                if found := read_arrays(path, [name]):
                    return found[name].tobytes().decode()
            except (DamagedFileError, OSError):
                continue
    return None


def remove_superseded(checkpoints: Path, newest: int) -> None:
    """Removes all but the newest checkpoints, and what writers that were killed have left.

    - `newest`: the update of the checkpoint that was just written. Those of later updates were damaged: otherwise,
      training would have continued from them.
    """
    updates = [update for update in saved_updates(checkpoints) if update <= newest]
    kept = {checkpoint_path(checkpoints, update) for update in updates[-KEPT:]}
    for path in checkpoints.iterdir():
        if path not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
