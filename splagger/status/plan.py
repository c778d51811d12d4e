"""plans/DIGEST.json: the runs of a command that trains several, so that those that did not start are known."""

import json
import os
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from splagger.errors import RunError, one_line
from splagger.files.processes import Process, this_process
from splagger.files.storage import json_digest, write_atomically, writing
from splagger.runs.record import in_words, is_name

PLANS = "plans"


class Planned(NamedTuple):
    """A run that a command trains.

    - `folder`: relative to the folder of all runs.
    - `members`: their number.
    - `updates`: the number of updates at the end of training.
    - `settings`: those that differ from the environment's and the method's. Older plans lack them.
    """

    folder: str
    env: str
    method: str
    members: int
    updates: int
    settings: list[str] = []


class Plan(NamedTuple):
    """The runs of a command, the process that started them, and where it started them."""

    runs: list[Planned]
    process: Process
    launcher: str


def write_plan(out: str | Path, runs: Sequence[Any], launcher: str = "local") -> Path:
    """Writes the plan of a command that trains several runs; the same runs replace their plan.

    - `out`: the folder for run folders.
    - `runs`: a `Run` each.
    - `launcher`: where they train.
    """
    planned = [
        Planned(
            os.path.relpath(run.folder(out), out),
            run.row.name,
            run.method_path or run.method.name,
            run.size,
            run.config.updates,
            list(in_words(dict(run.overrides))),
        )
        for run in runs
    ]
    rows = [one._asdict() for one in planned]
    path = Path(out) / PLANS / f"{json_digest({'runs': rows})[:12]}.json"
    data = {"launcher": launcher, "process": this_process()._asdict(), "runs": rows}
    with writing(f"to {out}", "choose another --out"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(data, indent=1) + "\n")
    return path


def read_plan(path: Path) -> Plan:
    """Reads a plan; raises a RunError that says what is wrong with it."""
    try:
        data = json.loads(path.read_text())
        process = _read(Process, data["process"])
        return Plan([_read(Planned, row) for row in data["runs"]], process, str(data["launcher"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise RunError(f"{path} is damaged ({one_line(error)}); it may be deleted") from None


def _read(kind: Any, data: Mapping[str, Any]) -> Any:
    """Makes a named tuple of plain data; raises an exception if a field lacks or has another type."""
    data = kind._field_defaults | dict(data)
    for name, annotation in kind.__annotations__.items():
        value, wanted = data[name], typing.get_origin(annotation) or annotation
        texts = value if wanted is list else [value] if wanted is str else []
        if type(value) is not wanted or not all(map(is_name, texts)):
            raise ValueError(f"its {name} is {value!r:.80}")
    return kind(*(data[name] for name in kind._fields))
