"""Findings from learning curves: which runs suffice for a test, and how short runs and diverged agents change its words."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from splagger.paper.verdicts import SEEDS, SO_FAR, UNDECIDED, Finding
from splagger.paper_numbers import PAPER
from splagger.plots.styles import style_of
from splagger.stats.estimates import Estimate, interval
from splagger.stats.evidence import Evidence, Series
from splagger.stats.recorded import COVERED
from splagger.stats.selection import Chosen

SHORTEST = 0.05  # fraction of the paper's frames from which on there is a verdict


class Shown(NamedTuple):
    """The outcome of one test on given curves.

    - `hint`: how many seeds would decide; empty if the test is decided.
    """

    outcome: str
    effect: Estimate
    note: str
    hint: str = ""


def name_of(series: Series) -> str:
    """Returns the label of the method, followed by its given settings."""
    words = [
        f"{name.replace('_', ' ').replace('kl', 'KL')} {value:g}" for name, value in series.given
    ]
    return ", ".join([style_of(series.method).label, *words])


def enough(evidence: Evidence, series: Series, until: float = np.inf) -> Chosen | None:
    """Returns the unbiased choice if it has enough seeds, else the paper's if that has; else None."""
    for chosen in (evidence.unbiased(series, until), evidence.as_in_paper(series, until)):
        if chosen is not None and len(chosen.curves) >= SEEDS:
            return chosen
    return None


def lacking(evidence: Evidence, *all_series: Series, cut: bool = False) -> str:
    """Returns why the data do not suffice for a verdict; empty if they do.

    - `cut`: runs may differ in length, because only their shared frames are compared.
    """
    for series in all_series:
        if evidence.members(series) is None:
            return f"no run of {name_of(series)} on {series.env}"
        if enough(evidence, series) is None:
            return f"fewer than {SEEDS} seeds of {name_of(series)} on {series.env}"
    ends = [chosen.frames[-1] for s in all_series if (chosen := enough(evidence, s))]
    if min(ends) < COVERED * max(ends) and not cut:
        return "the runs differ in length"
    if evidence.differ_in_schedule(*all_series):
        return "the runs differ in length, and their learning rates are annealed"
    if len(over_shared_frames(evidence, *all_series)) < len(all_series):
        return f"fewer than {SEEDS} seeds at the rate that is best over the shared frames"
    return ""


def over_shared_frames(evidence: Evidence, *all_series: Series) -> list[Chosen]:
    """Returns the choice of each series that has enough seeds, all cut to the frames of the shortest."""
    last = evidence.shared_frames(*all_series)
    return [chosen for s in all_series if (chosen := enough(evidence, s, last))]


def find(
    evidence: Evidence,
    all_series: Sequence[Series],
    about: str,
    chosen: Sequence[Chosen],
    test: Callable[..., Shown],
) -> Finding:
    """Returns what `test(*chosen)` shows, as a finding.

    Runs that are shorter than the paper's give an outcome "so far", or none if they are very short; more seeds of these
    would not help, so that the hint is left out.
    """
    series = min(all_series, key=evidence.covered)
    covered = evidence.covered(series) if evidence.lacks(series) else 1.0
    outcome, effect, note, hint = _said(test(*chosen), covered)
    kept = [c.without_diverged() for c in chosen]
    if any(c.diverged for c in chosen) and min(len(c.curves) for c in kept) >= SEEDS:
        others = _said(test(*kept), covered)
        note += f"; without the diverged agents: {interval(others.effect, '+.2f')}"
        note += f", {others.outcome}" if others.outcome != outcome else ""
    if covered == 1.0:
        return Finding(about, outcome, effect, note + hint)
    whole = PAPER[series.env].frames / 1e6
    short = f"at {covered * whole:.3g} of {whole:.3g} million frames"
    if covered < SHORTEST:
        return Finding(about, outcome, effect, f"{short}, too few for a verdict; {note}")
    return Finding(about, outcome, effect, f"{short}; {note}{hint}")


def _said(shown: Shown, covered: float) -> Shown:
    """Returns what a test may say of runs that cover this fraction of the paper's frames."""
    if covered == 1.0:
        return shown
    return shown._replace(outcome=UNDECIDED if covered < SHORTEST else SO_FAR[shown.outcome])
