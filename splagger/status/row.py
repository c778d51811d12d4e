"""One experiment: what its folder says about it."""

import contextlib
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from splagger.errors import RunError, one_line
from splagger.files.lock import Holder, find_holder
from splagger.files.processes import Process
from splagger.runs.axes import AXES
from splagger.runs.folder import OWNER, RECORD, RunFolder
from splagger.runs.record import RunRecord
from splagger.status.plan import Planned
from splagger.status.progress_file import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    TRAINING,
    Progress,
    read_progress,
)

WAITING, RUNNING, STALE, DAMAGED = "waiting", "running", "stale", "damaged"
STATES = (RUNNING, WAITING, INTERRUPTED, STALE, FAILED, DAMAGED, FINISHED)


class Row(NamedTuple):
    """One experiment.

    - `state`: "waiting" (planned, not started), "running", "finished", "failed", "interrupted" (stopped and saved),
      "stale" (its process ended without saving; the last checkpoint stays) or "damaged".
    - `node`: the machine that trains it, or was the last to do so.
    - `progress`: the finished fraction of training.
    - `eta`: seconds until its end, if it is running.
    - `frames_per_second`: of all members together.
    - `reason`: why it failed, was interrupted, is stale or damaged; what a running one does.
    - `members`: their number; 0 if unknown.
    - `settings`: those that differ from the environment's and the method's.
    """

    env: str
    method: str
    state: str
    node: str
    progress: float | int
    eta: float | int | None
    frames_per_second: float | int | None
    reason: str
    members: int
    folder: str
    settings: tuple[str, ...] = ()


def read_row(folder: Path, planned: Planned | None, now: float) -> Row:
    """Returns the state of one experiment; nothing is raised for damaged files.

    - `planned`: the experiment in a plan, if it is in one.
    - `now`: the time of the machine that stores the folder.
    """
    env, method = (planned.env, planned.method) if planned else folder.absolute().parts[-3:-1]
    members, settings = (planned.members, tuple(planned.settings)) if planned else (0, ())
    blank = Row(env, method, WAITING, "", 0.0, None, None, "", members, str(folder), settings)
    try:
        holder, written = find_holder(folder / OWNER, now), read_progress(folder)
        with _messages() as messages:
            record = RunFolder(folder).record() if (folder / RECORD).exists() else None
    except (RunError, OSError) as error:
        return blank._replace(state=DAMAGED, reason=one_line(error))
    progress, time_written = written or (None, 0.0)
    row = _with_record(blank, record, planned, progress) if record else blank
    row = _with_holder(row, holder, progress, now - time_written) if holder else row
    reason = row.reason or messages.getvalue().strip().removeprefix("splagger: ")
    return row._replace(reason=one_line(RunError(reason)) if reason else "")


@contextlib.contextmanager
def _messages() -> Iterator[io.StringIO]:
    """Collects warnings about files that were read from a copy."""
    with contextlib.redirect_stderr(io.StringIO()) as text:
        yield text


def _with_record(
    row: Row, record: RunRecord, planned: Planned | None, progress: Progress | None
) -> Row:
    """The row of a run that nobody trains now."""
    done = record.finished and (planned is None or record.update >= planned.updates)
    state, reason = INTERRUPTED, ""
    if done:
        state = FINISHED
    elif record.failed:
        state, reason = FAILED, record.failed
    elif progress and progress.phase == FAILED:
        state, reason = FAILED, progress.reason
    elif record.finished:
        state, reason = WAITING, "more frames are planned"
    elif progress:
        reason = progress.reason
    return row._replace(
        env=record.env,
        method=record.method,
        state=state,
        node=progress.host if progress else "",
        progress=1.0 if done else _fraction(record, planned),
        frames_per_second=record.frames_per_second,
        reason=reason,
        members=row.members or _members(record),
        settings=record.settings,
    )


def _with_holder(row: Row, holder: Holder, progress: Progress | None, age: float) -> Row:
    """The row of a run whose folder a process holds, dead or alive."""
    process = holder.process or Process("", 0, "", "", "")
    row = row._replace(node=process.host or row.node)
    is_its = progress is not None and (progress.host, progress.pid) == (process.host, process.pid)
    if progress and is_its and progress.updates:
        row = row._replace(
            progress=max(row.progress, progress.update / progress.updates),
            frames_per_second=progress.frames_per_second or row.frames_per_second,
        )
    if holder.is_dead:
        reason = f"{holder} ended without saving; its last heartbeat was {holder.age:.0f} s ago"
        return row._replace(state=STALE, reason=reason)
    if not (progress and is_its):
        return row._replace(state=RUNNING, reason="starting")
    eta = None
    if progress.frames_per_second and progress.frames_left is not None:
        eta = max(0.0, progress.frames_left / progress.frames_per_second - max(0.0, age))
    reason = "" if progress.phase == TRAINING else progress.phase
    return row._replace(state=RUNNING, eta=eta, reason=reason)


def _fraction(record: RunRecord, planned: Planned | None) -> float:
    """The finished fraction of training; 0 if its length is unknown."""
    if planned is not None:
        return min(1.0, record.update / max(planned.updates, 1))
    frames = record.arguments.get("frames")
    return min(1.0, record.frames / frames) if frames else 0.0


def _members(record: RunRecord) -> int:
    """The number of members in a record: the product of the lengths of all axes."""
    values = [record.arguments.get(axis.plural) for axis in AXES]
    return math.prod(len(v) for v in values if isinstance(v, list | tuple))
