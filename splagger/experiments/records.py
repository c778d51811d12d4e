"""The run folder: description, curves, checkpoint. Every write is atomic, one process at a time.

runs/<env>/<method>/<digest>/
  run.json        everything needed to run it again, and how it went
  curves.csv      one line an evaluation and run
  checkpoints/    the whole training state (Orbax)
  tensorboard/    the curves again, as event files
"""

import contextlib
import csv
import fcntl
import functools as ft
import io
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.recorded import CURVES as CURVES
from splagger.recorded import DESCRIPTION as DESCRIPTION
from splagger.recorded import RecordedRun, find_recorded
from splagger.recorded import RunError as RunError

LOCK, CHECKPOINTS = "lock", "checkpoints"


class RunFolder(RecordedRun):
    """One experiment on disk, to be read and written."""

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes out for as long as the block lasts."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / LOCK, "a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(
                    f"another process is training in {self.path}; wait for it, or choose another --out"
                ) from None
            yield

    def write(self, description: dict[str, Any]) -> None:
        write_atomically(self.path / DESCRIPTION, json.dumps(description, indent=2) + "\n")

    def clear(self) -> None:
        """Removes what a run has written, but not the lock."""
        for name in (CHECKPOINTS, "tensorboard"):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in (DESCRIPTION, CURVES, f"{CURVES}.gz"):
            (self.path / name).unlink(missing_ok=True)

    def write_curves(self, rows: Sequence[dict[str, Any]]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomically(self.path / CURVES, text.getvalue())

    def checkpoints(self) -> list[int]:
        """The updates after which a whole checkpoint was written, oldest first."""
        folder = self.path / CHECKPOINTS
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        return sorted(int(name) for name in names if name.isdigit())

    def save(self, update: int, state: Any) -> None:
        """Writes the whole state and then drops older ones; a reader never sees half of it.

        What is there for this update already is the same state, and stays.
        """
        import orbax.checkpoint as ocp

        if update in self.checkpoints():
            return
        target = (self.path / CHECKPOINTS / str(update)).absolute()
        try:
            with ocp.StandardCheckpointer() as checkpointer:
                checkpointer.save(target, named_leaves(state))
                checkpointer.wait_until_finished()
        except ValueError as error:  # that is how Orbax reports a full disk
            raise OSError(str(error)) from error
        for old in self.checkpoints():
            if old != update:
                shutil.rmtree(self.path / CHECKPOINTS / str(old), ignore_errors=True)
        for leftover in (self.path / CHECKPOINTS).glob("*.orbax-checkpoint-tmp*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def restore(self, example: Any) -> tuple[int, Any] | None:
        """(update, state) of the newest checkpoint, or None; `example` gives structure and shapes."""
        import orbax.checkpoint as ocp

        updates = self.checkpoints()
        if not updates:
            return None
        source = (self.path / CHECKPOINTS / str(updates[-1])).absolute()
        try:
            with ocp.StandardCheckpointer() as checkpointer:
                leaves = checkpointer.restore(source, _shapes(example))
            state = from_named_leaves(example, leaves)
        except Exception as error:
            summary = (
                str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            )
            raise RunError(
                f"the checkpoint {source} cannot be read ({summary}); it is damaged or belongs to another "
                "version. Nothing was changed; --force starts the run over"
            ) from error
        return updates[-1], state


def find(root: str | Path) -> list[RunFolder]:
    """All run folders below `root`, in order of their path."""
    return [RunFolder(run.path) for run in find_recorded(root)]


def write_atomically(path: Path, text: str) -> None:
    """The file has its old content or the new one, whatever happens in between."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


_name = ft.partial(jax.tree_util.keystr, simple=True, separator=".")


def _is_key(leaf) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def named_leaves(tree) -> dict[str, np.ndarray]:
    """A flat dict from a leaf's path to plain numbers: no code, no devices, whatever the tree is made of."""

    def plain(leaf):
        leaf = jr.key_data(leaf) if _is_key(leaf) else leaf
        return np.asarray(leaf)

    return {_name(path): plain(leaf) for path, leaf in _leaves(tree)}


def _shapes(tree) -> dict[str, np.ndarray]:
    """What `named_leaves` of such a tree looks like, without its memory."""

    def plain(leaf):
        leaf = jax.eval_shape(jr.key_data, leaf) if _is_key(leaf) else leaf
        return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)

    return {_name(path): plain(leaf) for path, leaf in _leaves(tree)}


def _leaves(tree):
    """(path, leaf) of every leaf that has elements: Orbax takes no empty arrays."""
    return [(p, leaf) for p, leaf in jax.tree_util.tree_flatten_with_path(tree)[0] if leaf.size]


def from_named_leaves(example, leaves: dict[str, np.ndarray]):
    """A tree like `example` from what `named_leaves` gave; a ValueError names what does not fit."""
    expected = _shapes(example)
    for name, array in expected.items():
        found = leaves.get(name)
        if found is None or (found.shape, found.dtype) != (array.shape, array.dtype):
            kind = "nothing" if found is None else f"{found.dtype}{list(found.shape)}"
            raise ValueError(f"{name} is {kind}, not {array.dtype}{list(array.shape)}")
    stored = iter([leaves[name] for name in expected])

    def fill(template):
        if not template.size:
            return jnp.zeros(template.shape, template.dtype)
        return jr.wrap_key_data(jnp.asarray(next(stored))) if _is_key(template) else next(stored)

    return jax.tree.map(fill, example)
