"""The summary of a run: its best rate, final return and speed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from splagger.runs.folder import RunFolder
from splagger.stats.estimates import at_the_end
from splagger.stats.members import best_rate, members_of


class RunSummary(NamedTuple):
    """The best rate of a run by mean return over training, and the returns at that rate."""

    env: str
    method: str
    rate: float
    mean_return: float  # over training
    final_return: float  # over the last tenth of training, where figures end
    seeds: int
    diverged: int  # of these; they count with their return before training
    frames_per_second: float | None
    folder: str
    settings: tuple[str, ...]
    plan: Mapping[str, Any]


def summarize(folder: RunFolder) -> RunSummary:
    """Summarizes a run that has reached its first evaluation."""
    record = folder.record()
    parts = members_of(folder, record).values()
    members = max(parts, key=lambda m: m.curves(best_rate(m)).mean())
    rate = best_rate(members)
    curves = members.curves(rate)
    return RunSummary(
        record.env,
        record.method,
        rate,
        float(curves.mean()),
        float(at_the_end(curves).mean()),
        len(curves),
        int((~members.finite(rate)).sum()),
        record.frames_per_second,
        str(folder.path),
        record.settings,
        record.plan,
    )
