"""Reading run folders: description and curves. No jax here, so that figures need none."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

DESCRIPTION, CURVES = "run.json", "curves.csv"


class RunError(RuntimeError):
    """Something about a run folder that the user can mend; the message says how."""


class RecordedRun:
    """One experiment on disk, to be read."""

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        return (self.path / DESCRIPTION).is_file()

    def read(self) -> dict[str, Any]:
        """What run.json says."""
        try:
            record = json.loads((self.path / DESCRIPTION).read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(f"{self.path} is no run folder: it has no {DESCRIPTION}") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            record, reason = None, str(error)
        else:
            reason = "it holds no description"
        if not isinstance(record, dict):
            raise RunError(f"{self.path / DESCRIPTION} is damaged ({reason}); --force starts over")
        return record

    @property
    def curves(self) -> Path:
        """Where its curves are: as they were written, or compressed by gzip afterwards."""
        plain = self.path / CURVES
        packed = self.path / f"{CURVES}.gz"
        return packed if packed.is_file() and not plain.is_file() else plain

    def read_curves(self) -> list[dict[str, Any]]:
        """The rows of curves.csv; numbers as numbers."""
        if not self.curves.is_file():
            return []
        opened = gzip.open if self.curves.suffix == ".gz" else open
        with opened(self.curves, "rt", newline="") as handle:
            return [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(handle)]


def find_recorded(root: str | Path) -> list[RecordedRun]:
    """All run folders below `root`, in order of their path."""
    return [RecordedRun(path.parent) for path in sorted(Path(root).glob(f"**/{DESCRIPTION}"))]


def _number(text: str) -> Any:
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() and "." not in text and "e" not in text else value
