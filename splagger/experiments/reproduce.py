"""What the paper's figures still lack: the commands that make it, and making it."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from splagger.experiments.grid import Run
from splagger.figures.evidence import FRESH, Evidence, Series
from splagger.figures.panels import START, CurvePanel, Figure, Made, Missing

FIRST_FRESH_SEED = 100  # no sweep has it


class Plan(NamedTuple):
    """One experiment to be run, and what for."""

    run: Run
    purpose: str

    @property
    def frames(self) -> int:
        """Of all its members."""
        return self.run.frames * len(self.run.points)


def sweeps(figures: Sequence[Figure], evidence: Evidence) -> list[Plan]:
    """The paper's rates and seeds of every method that a figure lacks, short ones first."""
    lacking = [series for figure in figures for series in figure.missing(evidence).series]
    plans = [Plan(_run(group), "the best rate") for group in _grouped(lacking)]
    return sorted(plans, key=lambda plan: plan.frames)


def fresh_seeds(figures: Sequence[Figure], evidence: Evidence, seeds: int) -> list[Plan]:
    """Seeds that took no part in choosing the rate, for every method that was swept and has none yet.

    Experiments that compare settings (KL weights, temperatures) have none: they are about the choice.
    """
    panels = [panel for figure in figures for panel in figure.panels]
    wanted = dict.fromkeys(
        entry.series
        for panel in panels
        if isinstance(panel, CurvePanel)
        for entry in panel.entries
        if entry.series == Series(*entry.series[:2])
    )
    found = {series: evidence.honest(series) for series in wanted}
    numbers = range(FIRST_FRESH_SEED, FIRST_FRESH_SEED + seeds)
    plans = [
        Plan(Run.create(*series[:2], rates=[chosen.rate], seeds=numbers), "fresh seeds")
        for series, chosen in found.items()
        if chosen is not None and chosen.source != FRESH and seeds
    ]
    return sorted(plans, key=lambda plan: plan.frames)


def _grouped(series: Sequence[Series]) -> list[list[Series]]:
    """Sweeps of one method on one environment are one run."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for one in dict.fromkeys(series):
        groups.setdefault((one.env, one.method), []).append(one)
    return list(groups.values())


def commands(
    missing: Missing, evidence: Evidence, out: str | Path, analyses: str | Path
) -> list[str]:
    """One command a run or analysis; sweeps of one method on one environment are one run."""
    groups = _grouped(missing.series)
    planned = {(group[0].env, group[0].method): group for group in groups}
    told = [_training(group, out) for group in groups]
    for need in dict.fromkeys(missing.made):
        words = ["splagger", "analyse", need.name, "--out", str(analyses)]
        series = analyzed(need)
        if series is not None:
            folders = evidence.folders(series)
            run = _run(planned.get(series[:2], [series]))
            folder = folders[-1] if folders else run.folder(out)
            words += ["--run", str(folder), "--every-seed"]
        told.append(shlex.join(words))
    return told


def analyzed(need: Made) -> Series | None:
    """Whose agents an analysis is of: of fresh ones, or of PEARL's that were trained."""
    return None if need.when == START else Series(need.when, "pearl")


def _training(series: list[Series], out: str | Path) -> str:
    """`Run.command` of the paper's rates and seeds, written to where figures look."""
    env, method = series[0].env, series[0].method
    try:
        run = _run(series)
    except ValueError as error:
        reason = str(error).partition(";")[0]
        return f"{shlex.join(['splagger', 'train', env, method])}  # not yet: {reason}"
    return f"{run.command()} --out {shlex.quote(str(out))}"


def _run(series: list[Series]) -> Run:
    def swept(values):
        return tuple(dict.fromkeys(value for value in values if value is not None))

    weights = swept(s.kl_weight for s in series)
    temperatures = swept(s.temperature for s in series)
    env, method = series[0].env, series[0].method
    return Run.create(env, method, kl_weights=weights, temperatures=temperatures)
