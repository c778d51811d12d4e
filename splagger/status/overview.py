"""All experiments below a folder: those that were planned, and those that have a run folder."""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from splagger.errors import RunError
from splagger.files.cache import is_shared
from splagger.files.processes import is_gone
from splagger.runs.folder import OWNER, RECORD, walk
from splagger.status.plan import PLANS, Plan, Planned, read_plan
from splagger.status.row import WAITING, Row, read_row


class Overview(NamedTuple):
    """The experiments below a folder, and sentences about plans: damaged ones, and commands that have ended."""

    rows: list[Row]
    notes: list[str]


def overview(root: str | Path) -> Overview:
    """Returns all experiments below a folder; raises a RunError if there is no such folder."""
    root = Path(root)
    if not root.is_dir():
        raise RunError(f"there is no folder {root}; name the --out folder of a sweep")
    folders, paths = _find(root)
    plans, notes = _plans(paths)
    planned = _longest(plans)
    now = server_time(root)
    rows = {folder: read_row(folder, planned.get(folder), now) for folder in {*folders, *planned}}
    waiting = {folder for folder, row in rows.items() if row.state == WAITING}
    notes += [_note(path, plan, waiting) for path, plan in plans.items()]
    order = lambda row: (row.env, row.method, row.settings, row.folder)  # noqa: E731
    return Overview(sorted(rows.values(), key=order), [note for note in notes if note])


def server_time(folder: Path) -> float:
    """Returns the time of the machine that stores a folder: heartbeats are compared with it."""
    if is_shared(folder):
        with contextlib.suppress(OSError), tempfile.NamedTemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_mtime
    return time.time()


def _find(root: Path) -> tuple[list[Path], list[Path]]:
    """Returns all run folders and all plans below a folder."""
    folders, plans = [], []
    for folder, below, files in walk(root, strict=False):
        if RECORD in files or OWNER in below:
            folders.append(folder)
            below.clear()
        elif folder.name == PLANS:
            plans += [folder / file for file in sorted(files) if file.endswith(".json")]
    return folders, plans


def _plans(paths: Iterable[Path]) -> tuple[dict[Path, Plan], list[str]]:
    """Returns the plans that can be read, and what is wrong with the others."""
    plans, notes = {}, []
    for path in paths:
        try:
            plans[path] = read_plan(path)
        except RunError as error:
            notes.append(str(error))
    return plans, notes


def _longest(plans: Mapping[Path, Plan]) -> dict[Path, Planned]:
    """Returns the planned runs by folder; of several plans for one folder, that with the most updates."""
    runs = [
        (path.parents[1] / run.folder, run) for path, plan in plans.items() for run in plan.runs
    ]
    return dict(sorted(runs, key=lambda item: item[1].updates))


def _note(path: Path, plan: Plan, waiting: set[Path]) -> str:
    """Says if runs of a plan wait although its command has ended. Jobs of SLURM outlive the command."""
    count = len({path.parents[1] / run.folder for run in plan.runs} & waiting)
    if not count or "slurm" in plan.launcher.lower() or not is_gone(plan.process):
        return ""
    return (
        f"{count} waiting: the command that planned them ({plan.process}) has ended; give it again"
    )
