"""Reading run folders: description and curves. No jax here, so that figures need none."""

import csv
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

    def read_curves(self) -> list[dict[str, Any]]:
        """The rows of curves.csv; numbers as numbers."""
        if not (self.path / CURVES).is_file():
            return []
        with open(self.path / CURVES, newline="") as handle:
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
