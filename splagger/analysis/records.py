"""The files of an analysis: <out>/<analysis>/<when>/values.csv, and beside it analysis.json with its origin."""

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splagger.experiments.records import RunError, write_atomically

VALUES, DESCRIPTION = "values.csv", "analysis.json"


class Value(NamedTuple):
    """One line of values.csv; `dimension` is 0 where there is only one."""

    method: str
    seed: int
    step: int
    dimension: int
    value: float


def rows_of(method: str, seed: int, values: np.ndarray, first_step: int = 0) -> list[Value]:
    """The numbers [steps, dimensions] as lines; NaN stands for no number.

    >>> rows_of("rnn", 0, np.array([[1.0], [np.nan], [3.0]]))[-1]
    Value(method='rnn', seed=0, step=2, dimension=0, value=3.0)
    """
    places = np.argwhere(~np.isnan(values))
    return [
        Value(method, seed, int(t) + first_step, int(d), float(values[t, d])) for t, d in places
    ]


def write(folder: Path, rows: Iterable[Value], description: dict[str, Any]) -> None:
    """Both files, each whole or not at all; what was there before is replaced."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Value._fields)
    writer.writerows(row._replace(value=f"{row.value:.6g}") for row in rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / VALUES, text.getvalue())
        write_atomically(folder / DESCRIPTION, json.dumps(description, indent=2) + "\n")
    except OSError as error:
        raise RunError(
            f"cannot write to {folder} ({error.strerror}); choose another --out"
        ) from None


def read(folder: str | Path) -> tuple[list[Value], dict[str, Any]]:
    """(lines of values.csv, analysis.json) of a folder that `write` made."""
    folder = Path(folder)
    try:
        with open(folder / VALUES, newline="") as handle:
            lines = list(csv.DictReader(handle))
        description = json.loads((folder / DESCRIPTION).read_text())
    except FileNotFoundError as error:
        raise RunError(f"{folder} holds no analysis: there is no {error.filename}") from None
    kinds = Value.__annotations__
    return [Value(**{k: kinds[k](v) for k, v in line.items()}) for line in lines], description
