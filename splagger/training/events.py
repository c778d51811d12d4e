"""Curves as TensorBoard event files, in one subfolder per member."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from splagger.files.event_file import EventFile
from splagger.runs.run import Point


class Events:
    """Writes all metrics of all members.

    `frames` is the number of frames at which training continues: events after it are discarded.
    """

    def __init__(self, folder: Path, points: Sequence[Point], frames: int):
        names = [f"rate{p.rate:g}-seed{p.seed}" for p in points]
        if len(set(names)) < len(names):
            names = [f"{i:03d}-{name}" for i, name in enumerate(names)]
        first = frames + 1 if frames else None
        self.files = {
            point: EventFile(folder / name, first)
            for point, name in zip(points, names, strict=True)
        }

    def add(self, point: Point, row: dict[str, Any]) -> None:
        """Writes one evaluation of a member."""
        skipped = (*Point._fields, "update", "frames")
        self.files[point].add(row["frames"], {k: v for k, v in row.items() if k not in skipped})
