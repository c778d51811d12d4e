"""Curves as TensorBoard event files, in one subfolder per member."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from splagger.runs.run import Point


class Events:
    """Writes all metrics of all members; does nothing if tensorboardX is not installed.

    `frames` is the number of frames at which training continues: events after it are discarded.
    """

    def __init__(self, folder: Path, points: Sequence[Point], frames: int):
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            self.writers = []
            return
        names = [f"rate{p.rate:g}-seed{p.seed}" for p in points]
        if len(set(names)) < len(names):
            names = [f"{i:03d}-{name}" for i, name in enumerate(names)]
        self.writers = [
            SummaryWriter(str(folder / name), purge_step=frames + 1 if frames else None)
            for name in names
        ]

    def add(self, index: int, row: dict[str, Any]) -> None:
        """Writes one evaluation of the member with this index."""
        if not self.writers:
            return
        for name, value in row.items():
            if name not in (*Point._fields, "update", "frames"):
                self.writers[index].add_scalar(name, value, row["frames"])

    def close(self) -> None:
        for writer in self.writers:
            writer.close()
