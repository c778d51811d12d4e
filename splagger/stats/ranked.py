"""Which runs a leaderboard ranks: those on tasks with a known scale that can be compared with the others of their task."""

from collections.abc import Sequence

import numpy as np

from splagger.paper_numbers import PROTOCOLS, Scale
from splagger.stats.evidence import Evidence, Series
from splagger.stats.members import default_settings
from splagger.stats.recorded import COVERED, RecordedRun, relative
from splagger.tables import listed


def scale_of(env: str) -> Scale | None:
    """Returns the returns that count as 0 and as 1, if they are known."""
    protocol = PROTOCOLS.get(env)
    return protocol.scale if protocol else None


def unscaled(env: str) -> str:
    """Returns why an environment cannot be ranked, and what can be done with its runs."""
    return (
        f"{env} has no known scale, so it cannot be ranked; train it by `splagger sweep`, and compare methods by "
        "`splagger compare`"
    )


def comparable(evidence: Evidence, series: Sequence[Series]) -> list[Series]:
    """Returns the series whose runs can be compared with the others of their task.

    If some have finished, the others cannot: the comparison would end where they are. Annealed runs must be as long as
    the longest.
    """
    finished = [s for s in series if evidence.finished(s)]
    found = [s for s in series if s in finished or s.env not in {f.env for f in finished}]
    longest = {
        env: max(evidence.schedules(*(s for s in found if s.env == env)), default=0)
        for env in {s.env for s in found}
    }
    return [s for s in found if _planned(evidence, s) >= COVERED * longest[s.env]]


def _planned(evidence: Evidence, series: Series) -> float | int:
    return max(evidence.schedules(series), default=np.inf)


def left_out_of(evidence: Evidence, asked: Sequence[RecordedRun], ranked: Sequence[Series]) -> str:
    """Returns which of the runs are not ranked, and why; empty if all are."""
    unknown = dict.fromkeys(run.record.env for run in asked if not scale_of(run.record.env))
    found = [f"{env} (no known scale)" for env in unknown]
    runs = [run for run in asked if run.record.env not in unknown]
    reasons = [(run, _reason(evidence, run, ranked)) for run in runs]
    found += [f"{relative(run.path)} ({reason})" for run, reason in reasons if reason]
    if not found:
        return ""
    other = any(reason and (run.changed or _other_axes(run)) for run, reason in reasons)
    return f"not ranked: {listed(found)}" + "; `splagger compare` shows other settings" * other


def _reason(evidence: Evidence, run: RecordedRun, ranked: Sequence[Series]) -> str:
    """Returns why a run is not ranked, in a few words; empty if it is."""
    series = Series(*run.name)
    pilot = evidence.pilot(series)
    counted = [*evidence.folders(series), *([pilot[0].path] if pilot else [])]
    if run.path not in counted:
        is_default = default_settings(run.record) in run.members
        words = [_other_axes(run), run.shortness if is_default else ""]
        return evidence.not_counted(run) or ", ".join(filter(None, words))
    if series in ranked:
        return ""
    return "annealed over fewer frames than others" if run.record.ended else run.shortness


def _other_axes(run: RecordedRun) -> str:
    """Returns the values of axes, such as kl_weight, that a run has and its settings do not."""
    default = default_settings(run.record)._asdict().items()
    found = [s._asdict() for s in run.members]
    return listed(f"{k}={s[k]:g}" for k, usual in default for s in found if s[k] != usual)
