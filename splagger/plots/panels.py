"""Panels of a figure: their lines, drawn from evidence, and what the evidence still lacks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from splagger.paper_numbers import ReferenceLine, reference_lines
from splagger.plots.styles import SOLID, Style, style_of
from splagger.runs.analyses import INITIALIZATION, AnalysisKey
from splagger.stats.estimates import bootstrap_interval, smooth, thin, window
from splagger.stats.evidence import AnalysisValues, Evidence, Series
from splagger.stats.selection import Chosen


class Line(NamedTuple):
    """A curve with its interval and its origin."""

    style: Style
    x: np.ndarray  # [P]
    low: np.ndarray
    mean: np.ndarray
    high: np.ndarray
    method: str
    seeds: int
    rate: float | None = None
    source: str = ""
    width: float = 2.0
    named: bool = True
    smoothed: bool = False  # over a tenth of training


class Missing(NamedTuple):
    """What a panel needs and the evidence lacks."""

    series: tuple[Series, ...] = ()
    analyses: tuple[AnalysisKey, ...] = ()


class Entry(NamedTuple):
    """A series that a panel shows if there is evidence for it, and its style."""

    series: Series
    style: Style


def learning_curve(
    style: Style, method: str, chosen: Chosen, longest: float, unit: float = 1e6
) -> Line:
    """Returns the mean over smoothed seeds with its 68% bootstrap interval, thinned to at most 200 points.

    - `longest`: the frames of the longest run in the same panel. All lines are smoothed over a tenth of these, because
      a short run would otherwise rise earlier than a long one that learns the same.
    """
    kept, last = thin(len(chosen.frames)), float(chosen.frames[-1])
    size = window(round((len(chosen.frames) - 1) * longest / last) + 1 if last else 1)
    smoothed = np.array([smooth(seed, size) for seed in chosen.curves])[:, kept]
    interval = bootstrap_interval(smoothed)
    frames = chosen.frames[kept] / unit
    line = Line(style, frames, *interval, method, len(smoothed), chosen.rate, chosen.source)
    return line._replace(smoothed=size > 1)


@dataclass(frozen=True)
class CurvePanel:
    """Return per meta-episode against training frames, each method at its best rate."""

    name: str
    title: str
    entries: tuple[Entry, ...]
    reference_lines: tuple[ReferenceLine, ...] = ()
    x_label: str = "frames (millions)"
    y_label: str = "return per meta-episode"
    log: bool = False

    def lines(self, evidence: Evidence) -> list[Line]:
        pairs = [(e, c) for e in self.entries if (c := evidence.for_figures(e.series))]
        longest = max((float(chosen.frames[-1]) for _, chosen in pairs), default=0.0)
        return [learning_curve(e.style, e.series.method, c, longest) for e, c in pairs]

    def missing(self, evidence: Evidence) -> Missing:
        return Missing(series=tuple(s for s, _ in self.entries if evidence.lacks(s)))


@dataclass(frozen=True)
class AnalysisPanel:
    """Values of an analysis against steps: the mean over seeds with its 68% bootstrap interval.

    If tasks differ in length, the line ends with the shortest one.
    """

    name: str
    title: str
    analysis: AnalysisKey
    methods: tuple[str, ...]
    y_label: str
    x_label: str = "step"
    log: bool = False
    reference_lines: tuple[ReferenceLine, ...] = ()

    def lines(self, evidence: Evidence) -> list[Line]:
        found = []
        for method in self.methods:
            values = evidence.analysis(self.analysis, method)
            if values is not None:
                steps, curves = self.curves(values)
                kept = np.isfinite(curves).all(axis=0)  # tasks may differ in length
                steps, curves = steps[kept], curves[:, kept]
                about = (method, len(curves))
                found.append(Line(style_of(method), steps, *bootstrap_interval(curves), *about))
        return found

    def curves(self, values: AnalysisValues) -> tuple[np.ndarray, np.ndarray]:
        """Returns (steps [P], one curve per seed [S, P])."""
        return values.steps, values.values.mean(axis=1)

    def missing(self, evidence: Evidence) -> Missing:
        if self.lines(evidence):
            return Missing()
        trained = () if self.analysis.when == INITIALIZATION else self.methods
        needed = [Series(self.analysis.when, method) for method in trained]
        return Missing(tuple(s for s in needed if evidence.lacks(s)), (self.analysis,))


DIMENSION = Style("one dimension", "#999999")
MEAN = Style("mean of the dimensions", "#000000", SOLID)


@dataclass(frozen=True)
class DimensionsPanel(AnalysisPanel):
    """Every dimension of the first seed as a thin line, and the mean over dimensions and seeds as a thick line."""

    methods: tuple[str, ...] = field(default=("pearl",))
    y_label: str = "variance of the latent"
    x_label: str = "environment steps"

    def lines(self, evidence: Evidence) -> list[Line]:
        found = []
        for thick in super().lines(evidence):
            values = evidence.analysis(self.analysis, thick.method)
            dimensions = [] if values is None else values.values[0, :, : len(thick.x)]
            for index, row in enumerate(dimensions):
                about = (thick.method, 1, None, f"dimension {index}", 0.7, index == 0)
                found.append(Line(DIMENSION, thick.x, row, row, row, *about))
            found.append(thick._replace(style=MEAN, source="mean"))
        return found


Panel = CurvePanel | AnalysisPanel


@dataclass(frozen=True)
class Figure:
    """Panels side by side with one legend."""

    name: str
    title: str
    where: str  # section and number in the paper
    panels: tuple[Panel, ...]
    columns: int = 3

    def missing(self, evidence: Evidence) -> Missing:
        found = [panel.missing(evidence) for panel in self.panels]
        series, analyses = (
            tuple(x for part in parts for x in part) for parts in zip(*found, strict=True)
        )
        return Missing(series, analyses)


def curves(
    title: str, env: str, methods: Sequence[str], labels: dict[str, str] | None = None
) -> CurvePanel:
    """Returns a panel of methods in their styles; `labels` renames some, as the paper does."""
    styles = {method: style_of(method) for method in methods}
    styles |= {m: styles[m]._replace(label=text) for m, text in (labels or {}).items()}
    entries = tuple(Entry(Series(env, method), styles[method]) for method in methods)
    return CurvePanel(env, title, entries, reference_lines(env))
