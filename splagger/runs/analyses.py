"""The files of an analysis: <out>/<analysis>/<when>/values.csv and analysis.json. Needs no JAX."""

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from splagger.errors import RunError
from splagger.files.storage import json_digest, sha256, write_atomically, writing
from splagger.runs.record import DIGEST

if TYPE_CHECKING:
    import pandas

VALUES, DESCRIPTION = "values.csv", "analysis.json"
INITIALIZATION = "initialization"
VALUES_DIGEST = "values_sha256"  # in analysis.json: the digest of values.csv


class AnalysisKey(NamedTuple):
    """The name of an analysis, and `when`: "initialization" or the environment that the agents were trained on."""

    name: str
    when: str

    @property
    def folder(self) -> Path:
        """The folder of this analysis, relative to the folder of all analyses."""
        return Path(self.name) / self.when


class Value(NamedTuple):
    """One row of values.csv; `dimension` is 0 if there is only one."""

    method: str
    seed: int
    step: int
    dimension: int
    value: float


def rows_of(method: str, seed: int, values: np.ndarray, first_step: int = 0) -> list[Value]:
    """Converts an array [steps, dimensions] to rows; NaN values are left out.

    >>> rows_of("rnn", 0, np.array([[1.0], [np.nan], [3.0]]))[-1]
    Value(method='rnn', seed=0, step=2, dimension=0, value=3.0)
    """
    indices = np.argwhere(~np.isnan(values))
    return [
        Value(method, seed, int(t) + first_step, int(d), float(values[t, d])) for t, d in indices
    ]


def write_analysis(folder: Path, rows: Iterable[Value], description: dict[str, Any]) -> None:
    """Writes or replaces both files, each atomically."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Value._fields)
    writer.writerows(row._replace(value=f"{row.value:.6g}") for row in rows)
    with writing(folder, "choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / VALUES, text.getvalue())
        complete = description | {VALUES_DIGEST: sha256(text.getvalue())}
        complete = {DIGEST: json_digest(complete)} | complete
        write_atomically(folder / DESCRIPTION, json.dumps(complete, indent=2) + "\n")


def read_values(folder: str | Path) -> "pandas.DataFrame":
    """Returns values.csv with the columns of `Value`."""
    import pandas

    path = Path(folder) / VALUES
    try:
        data = path.read_bytes()
        wanted = _description(folder).get(VALUES_DIGEST)
        if wanted not in (None, sha256(data)):
            raise _damaged(path, "its content is not what was written")
        # A method may be called "null" or "NA"; only an empty dimension is missing.
        empty: Any = {"keep_default_na": False, "na_values": {"dimension": [""]}}
        table: Any = pandas.read_csv(io.BytesIO(data), **empty).fillna({"dimension": 0})
        return table[list(Value._fields)].astype({"seed": int, "step": int, "dimension": int})
    except FileNotFoundError:
        raise RunError(f"{folder} holds no analysis: there is no {path}") from None
    except (ValueError, KeyError, OSError) as error:
        raise _damaged(path, error) from None


def read_description(folder: str | Path) -> dict[str, Any]:
    """Returns analysis.json, without the digests."""
    found = _description(folder)
    return {name: value for name, value in found.items() if name not in (DIGEST, VALUES_DIGEST)}


def _description(folder: str | Path) -> dict[str, Any]:
    path = Path(folder) / DESCRIPTION
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise RunError(f"{folder} holds no analysis: there is no {path}") from None
    except (json.JSONDecodeError, UnicodeDecodeError, OSError) as error:
        raise _damaged(path, error) from None
    if not isinstance(found, dict):
        raise _damaged(path, "it is not a JSON object")
    # Analyses of version 0.1 have no digests. Those with one of them must have both.
    rest = {name: value for name, value in found.items() if name != DIGEST}
    digest = found.get(DIGEST, "" if VALUES_DIGEST in found else None)
    if digest not in (None, json_digest(rest)) or (digest and VALUES_DIGEST not in found):
        raise _damaged(path, "its content is not what was written")
    return found


def find_analyses(root: str | Path) -> list[AnalysisKey]:
    """Returns every analysis below `root`, sorted."""
    paths = sorted(Path(root).glob(f"*/*/{DESCRIPTION}"))
    return [AnalysisKey(path.parts[-3], path.parts[-2]) for path in paths]


def _damaged(path: Path, reason: object) -> RunError:
    return RunError(f"{path} is damaged ({str(reason).strip()}); make that analysis again")
