"""curves.csv, with one row per evaluation and member: its only writer and reader. Needs no JAX."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splagger.errors import RunError
from splagger.runs.storage import write_atomically

if TYPE_CHECKING:
    import pandas

CURVES = "curves.csv"


def curves_path(folder: Path) -> Path:
    """Returns the path of a run's curves, which may have been compressed with gzip after training."""
    plain, packed = folder / CURVES, folder / f"{CURVES}.gz"
    return packed if packed.is_file() and not plain.is_file() else plain


def read_curves(folder: Path, columns: Sequence[str] | None = None) -> "pandas.DataFrame | None":
    """Returns the curves of a run, or only some columns; None before the first evaluation.

    Floats are read exactly, so that writing them again gives the same text.
    """
    import pandas

    path = curves_path(folder)
    try:
        chosen: Any = columns
        return pandas.read_csv(path, usecols=chosen, **_exact_floats(pandas.__version__))
    except (FileNotFoundError, pandas.errors.EmptyDataError):
        return None
    except (ValueError, EOFError, OSError) as error:
        reason = str(error).strip()  # those of pandas end with a line break
        raise RunError(f"{path} is damaged ({reason}); train that run again") from None


def _exact_floats(version: str) -> dict[str, Any]:
    """Options that make pandas read floats exactly. Since version 3.1 it always does."""
    is_old = tuple(map(int, version.split(".")[:2])) < (3, 1)
    return {"float_precision": "round_trip"} if is_old else {}


def write_curves(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Replaces the curves of a run."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(folder / CURVES, text.getvalue())
