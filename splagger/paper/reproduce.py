"""The experiments and commands for what the paper's figures still lack."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from splagger.errors import UserError
from splagger.plots.panels import CurvePanel, Figure, Missing
from splagger.runs.analyses import INITIALIZATION, AnalysisKey
from splagger.runs.axes import SETTINGS
from splagger.runs.run import Run
from splagger.stats.evidence import Evidence, Series
from splagger.stats.selection import FRESH


class Plan(NamedTuple):
    """An experiment to run, and its purpose."""

    run: Run
    purpose: str

    @property
    def frames(self) -> int:
        """Total frames of all members."""
        return self.run.frames * len(self.run.points)


def sweeps(figures: Sequence[Figure], evidence: Evidence, race: bool = False) -> list[Plan]:
    """Returns one plan per method that a figure lacks, with the paper's rates and seeds, the shortest first.

    - `race`: stop rates that are clearly behind early.
    """
    lacking = [series for figure in figures for series in figure.missing(evidence).series]
    plans = [Plan(_run(group, race), "the best rate") for group in _grouped(lacking)]
    return sorted(plans, key=lambda plan: plan.frames)


def fresh_seeds(figures: Sequence[Figure], evidence: Evidence, seeds: int) -> list[Plan]:
    """Returns plans with seeds that the rate was not chosen on, for every swept method that has none yet.

    Experiments that compare settings (KL weights, temperatures) need none, since the comparison is their purpose.
    """
    panels = [panel for figure in figures for panel in figure.panels]
    wanted = dict.fromkeys(
        entry.series
        for panel in panels
        if isinstance(panel, CurvePanel)
        for entry in panel.entries
        if not entry.series.given
    )
    found = {series: evidence.unbiased(series) for series in wanted}
    lacking = [s for s, chosen in found.items() if chosen is not None and chosen.source != FRESH]
    firsts = {s: evidence.first_fresh_seed(s) for s in (lacking if seeds else [])}
    plans = [
        Plan(
            Run.create(*s.name, rates=[evidence.best_rate(s)], seeds=range(first, first + seeds)),
            "fresh seeds",
        )
        for s, first in firsts.items()
    ]
    return sorted(plans, key=lambda plan: plan.frames)


def _grouped(series: Sequence[Series]) -> list[list[Series]]:
    """Groups the series by method and environment; each group is one run."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for one in dict.fromkeys(series):
        groups.setdefault(one.name, []).append(one)
    return list(groups.values())


def commands(
    missing: Missing, evidence: Evidence, out: str | Path, analyses: str | Path
) -> list[str]:
    """Returns one command per missing run or analysis."""
    groups = _grouped(missing.series)
    planned = {group[0].name: group for group in groups}
    lines = [_training(group, out) for group in groups]
    for key in dict.fromkeys(missing.analyses):
        words = ["splagger", "analyse", key.name, "--out", str(analyses)]
        series = analyzed_series(key)
        if series is not None:
            folders = evidence.folders(series)
            run = _run(planned.get(series.name, [series]))
            folder = folders[-1] if folders else run.folder(out)
            words += ["--run", str(folder), "--every-seed"]
        lines.append(shlex.join(words))
    return lines


def analyzed_series(key: AnalysisKey) -> Series | None:
    """Returns the series whose trained agents are analyzed; None at initialization."""
    return None if key.when == INITIALIZATION else Series(key.when, "pearl")


def _training(series: list[Series], out: str | Path) -> str:
    """Returns the command that trains these series with the paper's rates and seeds into `out`."""
    env, method = series[0].name
    try:
        run = _run(series)
    except UserError as error:
        reason = str(error).partition(";")[0]
        return f"{shlex.join(['splagger', 'train', env, method])}  # not yet: {reason}"
    return f"{run.command()} --out {shlex.quote(str(out))}"


def _run(series: list[Series], race: bool = False) -> Run:
    """Returns the run that sweeps all settings of these series of one method on one environment."""

    def swept(name):
        return tuple(dict.fromkeys(v for s in series for k, v in s.given if k == name))

    axes = {axis.plural: values for axis in SETTINGS if (values := swept(axis.name))}
    return Run.create(*series[0].name, race=race, **axes)
