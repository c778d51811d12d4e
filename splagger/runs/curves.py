"""curves.csv, with one row per evaluation and member: its text and its table. Needs no JAX."""

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splagger.errors import RunError
from splagger.files.storage import unreadable
from splagger.runs.axes import AXES, Plan

if TYPE_CHECKING:
    import pandas

CURVES = "curves.csv"
IDENTITY = ("update", "frames", *(axis.name for axis in AXES))  # columns that name an evaluation


def format_curves(rows: Sequence[dict[str, Any]]) -> str:
    """Returns the text of curves.csv; a column that some rows lack holds "nan" there."""
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, fieldnames=names, restval="nan", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def curves_path(folder: Path) -> Path:
    """Returns the path of a run's curves, which may have been compressed with gzip after training."""
    plain, packed = folder / CURVES, folder / f"{CURVES}.gz"
    return packed if packed.is_file() and not plain.is_file() else plain


def read_bytes(path: Path) -> bytes | None:
    """Returns the uncompressed content of a file of curves; None if there is no file."""
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise unreadable(path, error) from None
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, str(error).strip()) from None


def parse_curves(
    data: bytes, path: Path, columns: Sequence[str] | None = None, plan: Plan | None = None
) -> "pandas.DataFrame | None":
    """Returns curves as a table, or some of their columns; None before the first evaluation.

    Floats are read exactly: written again, they give the same text. With the run's `plan`, columns of axes that are
    newer than the run hold their defaults. `path` is named in errors.
    """
    import pandas

    chosen: Any = None if columns is None else lambda name: name in columns
    options = _exact_floats(pandas.__version__)
    try:
        frame = pandas.read_csv(io.BytesIO(data), usecols=chosen, **options)
    except pandas.errors.EmptyDataError:
        return None
    except ValueError as error:
        raise damaged(path, str(error).strip()) from None
    for axis in AXES if plan is not None else ():
        if axis.newer and axis.name not in frame and axis.name in (columns or [axis.name]):
            frame[axis.name] = axis.default(plan or {})[0]
    missing = [name for name in columns or () if name not in frame]
    if missing:
        raise damaged(path, f"it has no column {missing[0]!r}")
    for name in frame if len(frame) else ():
        if not pandas.api.types.is_numeric_dtype(frame[name]):
            raise damaged(path, f"its column {name!r} holds something else than numbers")
        if name in IDENTITY and frame[name].isna().any():
            raise damaged(path, f"its column {name!r} lacks numbers")
    return frame


def damaged(path: Path, reason: str) -> RunError:
    """Returns the error for a file of curves that cannot be used."""
    return RunError(f"{path} is damaged ({reason}); train that run again")


def _exact_floats(version: str) -> dict[str, Any]:
    """Options that make pandas read floats exactly. Since version 3.1 it always does."""
    is_old = tuple(map(int, version.split(".")[:2])) < (3, 1)
    return {"float_precision": "round_trip"} if is_old else {}
