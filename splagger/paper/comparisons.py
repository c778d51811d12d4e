"""Tests of claims about learning curves: which method earns more, which learns, which is faster.

Differences are fractions of the environment's scale, from guessing (0) to the best known policy (1). If the scale is unknown, 0 is the return of untrained agents and 1 that of the best compared method. All tests use seeds that the rate was not
chosen on if there are enough.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from splagger.paper.findings import (
    Shown,
    enough,
    find,
    lacking,
    name_of,
    over_shared_frames,
)
from splagger.paper.verdicts import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Finding,
    Region,
    Verdict,
    advice,
    conclude,
    decide,
)
from splagger.paper_numbers import SCALES, Scale
from splagger.plots.styles import style_of
from splagger.stats.estimates import (
    at_the_end,
    difference,
    estimate,
    improvement,
    over_training,
    smooth,
)
from splagger.stats.evidence import Evidence, Series
from splagger.stats.selection import Chosen

MEASURES = {over_training: "mean return over training", at_the_end: "return at the end of training"}


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
        if why := lacking(evidence, self.first, other, cut=True):
            return Finding(about, UNDECIDED, note=why)
        chosen = over_shared_frames(evidence, self.first, other)
        scale = _scale(self.first.env, [c.curves for c in chosen])
        if scale.best <= scale.guess:
            return Finding(about, UNDECIDED, note="neither is better than untrained")

        def test(*chosen: Chosen) -> Shown:
            first, second = (self.measure(c.curves) / (scale.best - scale.guess) for c in chosen)
            effect = estimate(difference, first, second)
            probability = float(improvement(first, second))
            seeds = " and ".join(c.seeds for c in chosen)
            seeds_each = 2 / sum(1 / len(c.curves) for c in chosen)  # as precise as these seeds
            note = f"P(more) = {probability:.2f}; seeds: {seeds}"
            hint = advice(effect, self.region, seeds_each)
            return Shown(decide(effect, self.region), effect, note, hint)

        return find(evidence, (self.first, other), about, chosen, test)

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
        why, chosen = lacking(evidence, series), enough(evidence, series)
        if why or chosen is None:
            return Finding(name_of(series), UNDECIDED, note=why)
        return find(evidence, [series], name_of(series), [chosen], self._test)

    def _test(self, chosen: Chosen) -> Shown:
        effect = estimate(lambda ends: ends.mean(axis=-1), at_the_end(chosen.curves))
        hint = advice(effect, self.region, len(chosen.curves))
        return Shown(decide(effect, self.region), effect, f"seeds: {chosen.seeds}", hint)

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

    A seed that never reaches the level counts as if it did at the end of training. With such seeds among the others, the effect is a lower bound and cannot refute the claim; with such seeds of `first`, it is
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
        if why := lacking(evidence, self.first, other):
            return Finding(about, UNDECIDED, note=why)
        chosen = over_shared_frames(evidence, self.first, other)
        if min(len(c.frames) for c in chosen) < 2:
            return Finding(about, UNDECIDED, note="only evaluated before training")
        return find(evidence, (self.first, other), about, chosen, self._test)

    def _test(self, *chosen: Chosen) -> Shown:
        (first, early), (second, late) = (self._frames(c.frames, c.curves) for c in chosen)
        effect = estimate(difference, np.log2(second), np.log2(first))
        outcome = decide(effect, self.region)
        if (outcome == HOLDS and early) or (outcome == FAILS and late):
            outcome = UNDECIDED
        note = f"{first.mean() / 1e6:.3g} and {second.mean() / 1e6:.3g} million frames"
        note += f"; {early} and {late} seeds never reach the level" if early or late else ""
        return Shown(outcome, effect, note)

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
