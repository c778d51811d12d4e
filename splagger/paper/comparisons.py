"""Tests of claims about learning curves: which method earns more, which learns, which is faster.

Differences are fractions of the environment's scale, from guessing (0) to the best known policy (1). If the scale is unknown, 0 is the return of untrained agents and 1 that of the best compared method. All tests use seeds that the rate was not
chosen on if there are enough.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from splagger.paper.verdicts import (
    FAILS,
    HOLDS,
    SEEDS,
    SO_FAR,
    UNDECIDED,
    Finding,
    Region,
    Verdict,
    advice,
    conclude,
    decide,
)
from splagger.paper_numbers import PAPER, SCALES, Scale
from splagger.plots.styles import style_of
from splagger.stats.estimates import (
    Estimate,
    at_the_end,
    difference,
    estimate,
    improvement,
    over_training,
    smooth,
)
from splagger.stats.evidence import Evidence, Series
from splagger.stats.recorded import COVERED
from splagger.stats.selection import Chosen

SHORTEST = 0.05  # fraction of the paper's frames from which on there is a verdict
MEASURES = {over_training: "mean return over training", at_the_end: "return at the end of training"}


def name_of(series: Series) -> str:
    """Returns the label of the method, followed by its given settings."""
    words = [
        f"{name.replace('_', ' ').replace('kl', 'KL')} {value:g}" for name, value in series.given
    ]
    return ", ".join([style_of(series.method).label, *words])


def _enough(evidence: Evidence, series: Series, until: float = np.inf) -> Chosen | None:
    """Returns the unbiased choice if it has enough seeds, else the paper's if that has; else None."""
    for chosen in (evidence.unbiased(series, until), evidence.as_in_paper(series, until)):
        if chosen is not None and len(chosen.curves) >= SEEDS:
            return chosen
    return None


def _lacking(evidence: Evidence, *all_series: Series, cut: bool = False) -> str:
    """Returns why the data do not suffice for a verdict; empty if they do.

    - `cut`: runs may differ in length, because only their shared frames are compared.
    """
    for series in all_series:
        if evidence.members(series) is None:
            return f"no run of {name_of(series)} on {series.env}"
        if _enough(evidence, series) is None:
            return f"fewer than {SEEDS} seeds of {name_of(series)} on {series.env}"
    ends = [chosen.frames[-1] for s in all_series if (chosen := _enough(evidence, s))]
    if min(ends) < COVERED * max(ends) and not cut:
        return "the runs differ in length"
    if evidence.differ_in_schedule(*all_series):
        return "the runs differ in length, and their learning rates are annealed"
    if len(_over_shared_frames(evidence, *all_series)) < len(all_series):
        return f"fewer than {SEEDS} seeds at the rate that is best over the shared frames"
    return ""


def _finding(
    evidence: Evidence,
    all_series: Sequence[Series],
    about: str,
    outcome: str,
    effect: Estimate,
    note: str,
    hint: str = "",
) -> Finding:
    """Returns a finding. If runs are shorter than the paper's, its outcome is one "so far", or none if they are very short.

    - `hint`: how many seeds would decide. More seeds of very short runs would not.
    """
    series = min(all_series, key=evidence.covered)
    if not evidence.lacks(series):
        return Finding(about, outcome, effect, note + hint)
    covered, whole = evidence.covered(series), PAPER[series.env].frames / 1e6
    short = f"at {covered * whole:.3g} of {whole:.3g} million frames"
    if covered < SHORTEST:
        return Finding(about, UNDECIDED, effect, f"{short}, too few for a verdict; {note}")
    return Finding(about, SO_FAR[outcome], effect, f"{short}; {note}{hint}")


def _over_shared_frames(evidence: Evidence, *all_series: Series) -> list[Chosen]:
    """Returns the choice of each series that has enough seeds, all cut to the frames of the shortest."""
    found = [members for s in all_series if (members := evidence.members(s))]
    last = min((members.frames[-1] for members in found), default=np.inf)
    return [chosen for s in all_series if (chosen := _enough(evidence, s, last))]


def _scale(env: str, curves: list[np.ndarray]) -> Scale:
    """Returns the scale. If `best` is not above `guess`, nothing was learned and there is no scale."""
    untrained = float(np.mean([c[:, 0].mean() for c in curves]))
    return SCALES.get(env) or Scale(untrained, float(max(at_the_end(c).mean() for c in curves)))


@dataclass(frozen=True)
class Comparison:
    """Compares `first` with each of `others`: the difference of means as a fraction of the scale.

    Runs that differ in length are compared over their shared frames, and each rate is the best one over these.
    """

    first: Series
    others: tuple[Series, ...]
    measure: Callable[[np.ndarray], np.ndarray] = over_training
    margin: float = 0.02

    unit = "difference, fraction of the scale"

    @property
    def region(self) -> Region:
        raise NotImplementedError

    def words(self) -> str:
        raise NotImplementedError

    def evaluate(self, evidence: Evidence) -> Verdict:
        return conclude([self._against(evidence, other) for other in self.others])

    def _against(self, evidence: Evidence, other: Series) -> Finding:
        about = f"against {name_of(other)}"
        if lacking := _lacking(evidence, self.first, other, cut=True):
            return Finding(about, UNDECIDED, note=lacking)
        chosen = _over_shared_frames(evidence, self.first, other)
        curves = [c.curves for c in chosen]
        scale = _scale(self.first.env, curves)
        if scale.best <= scale.guess:
            return Finding(about, UNDECIDED, note="neither is better than untrained")
        first, second = (self.measure(c) / (scale.best - scale.guess) for c in curves)
        effect = estimate(difference, first, second)
        probability = float(improvement(first, second))
        seeds = " and ".join(c.seeds for c in chosen)
        fewest = min(len(c.curves) for c in chosen)
        note = f"P(more) = {probability:.2f}; seeds: {seeds}"
        outcome, hint = decide(effect, self.region), advice(effect, self.region, fewest)
        return _finding(evidence, (self.first, other), about, outcome, effect, note, hint)

    def _names(self) -> str:
        return ", ".join(name_of(other) for other in self.others)


class Beats(Comparison):
    """`first` is above each of the others by more than the margin."""

    @property
    def region(self) -> Region:
        return Region(low=self.margin)

    def words(self) -> str:
        return f"{MEASURES[self.measure]}: {name_of(self.first)} above {self._names()} by more than {self.margin:.0%}"


class AtLeast(Comparison):
    """`first` is not below any of the others by more than the margin."""

    @property
    def region(self) -> Region:
        return Region(low=-self.margin)

    def words(self) -> str:
        return f"{MEASURES[self.measure]}: {name_of(self.first)} at most {self.margin:.0%} below {self._names()}"


@dataclass(frozen=True)
class Comparable(Comparison):
    """`first` is within a tenth of the scale of each of the others, which looks like a small gap in a figure."""

    margin: float = 0.1

    @property
    def region(self) -> Region:
        return Region(-self.margin, self.margin)

    def words(self) -> str:
        return f"{MEASURES[self.measure]}: {name_of(self.first)} within {self.margin:.0%} of {self._names()}"


@dataclass(frozen=True)
class Level:
    """Compares the return over the last tenth of training with a level."""

    env: str
    methods: tuple[str, ...]
    level: float

    unit = "return at the end of training"

    @property
    def region(self) -> Region:
        raise NotImplementedError

    def words(self) -> str:
        raise NotImplementedError

    def evaluate(self, evidence: Evidence) -> Verdict:
        return conclude([self._finding(evidence, Series(self.env, m)) for m in self.methods])

    def _finding(self, evidence: Evidence, series: Series) -> Finding:
        lacking, chosen = _lacking(evidence, series), _enough(evidence, series)
        if lacking or chosen is None:
            return Finding(name_of(series), UNDECIDED, note=lacking)
        effect = estimate(lambda ends: ends.mean(axis=-1), at_the_end(chosen.curves))
        seeds = len(chosen.curves)
        note = f"seeds: {chosen.seeds}"
        outcome, hint = decide(effect, self.region), advice(effect, self.region, seeds)
        return _finding(evidence, [series], name_of(series), outcome, effect, note, hint)

    def _names(self) -> str:
        return ", ".join(style_of(method).label for method in self.methods)


class Learns(Level):
    """Every method ends above the level."""

    @property
    def region(self) -> Region:
        return Region(low=self.level)

    def words(self) -> str:
        return f"return at the end of training: {self._names()} above {self.level:.4g}"


class Fails(Level):
    """Every method ends below the level."""

    @property
    def region(self) -> Region:
        return Region(high=self.level)

    def words(self) -> str:
        return f"return at the end of training: {self._names()} below {self.level:.4g}"


@dataclass(frozen=True)
class Sooner:
    """`first` reaches a level in fewer frames; the effect is log₂ of the ratio of frames.

    A seed that never reaches the level counts as if it did at the end of training. If they belong to the others, the effect is a lower bound and cannot refute the claim; if they belong to `first`, it is
    an upper bound and cannot confirm it.
    """

    first: Series
    others: tuple[Series, ...]
    level: float
    factor: float = 1.5  # the meaning of "significantly more" frames

    unit = "log₂ of the ratio of frames"

    @property
    def region(self) -> Region:
        return Region(low=float(np.log2(self.factor)))

    def evaluate(self, evidence: Evidence) -> Verdict:
        return conclude([self._against(evidence, other) for other in self.others])

    def _against(self, evidence: Evidence, other: Series) -> Finding:
        about = f"against {name_of(other)}"
        if lacking := _lacking(evidence, self.first, other):
            return Finding(about, UNDECIDED, note=lacking)
        chosen = _over_shared_frames(evidence, self.first, other)
        if min(len(c.frames) for c in chosen) < 2:
            return Finding(about, UNDECIDED, note="only evaluated before training")
        (first, early), (second, late) = (self._frames(c.frames, c.curves) for c in chosen)
        effect = estimate(difference, np.log2(second), np.log2(first))
        outcome = decide(effect, self.region)
        if (outcome == HOLDS and early) or (outcome == FAILS and late):
            outcome = UNDECIDED
        note = f"{first.mean() / 1e6:.3g} and {second.mean() / 1e6:.3g} million frames"
        note += f"; {early} and {late} seeds never reach the level" if early or late else ""
        return _finding(evidence, (self.first, other), about, outcome, effect, note)

    def _frames(self, frames: np.ndarray, curves: np.ndarray) -> tuple[np.ndarray, int]:
        """Returns the frames [S] at which smoothed curves first reach the level, and the number that never do."""
        found, never = [], 0
        for curve in curves:
            reached = np.flatnonzero(smooth(curve) >= self.level)
            never += not len(reached)
            found.append(frames[max(1, reached[0]) if len(reached) else curves.shape[1] - 1])
        return np.array(found), never

    def words(self) -> str:
        others = ", ".join(name_of(other) for other in self.others)
        return (
            f"frames until the smoothed return reaches {self.level:.4g}: more than "
            f"{self.factor:g} times as many for {others} as for {name_of(self.first)}"
        )
