"""A panel: what it shows, the lines that the evidence gives it, and what is still missing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from splagger.figures.evidence import Analysis, Chosen, Evidence, Series
from splagger.figures.scales import SCALES, Mark, marks
from splagger.figures.stats import bootstrap_interval, smooth, thin
from splagger.figures.styles import SOLID, Style, style_of


class Line(NamedTuple):
    """A curve with its interval, and where it comes from."""

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


START = "initialization"


class Made(NamedTuple):
    """An analysis that a panel needs: its name and the moment, `START` or the environment of the training."""

    name: str
    when: str


class Missing(NamedTuple):
    """What a panel would show if it were there."""

    series: tuple[Series, ...] = ()
    made: tuple[Made, ...] = ()


class Entry(NamedTuple):
    """A line that a panel wants."""

    series: Series
    style: Style


def learning_curve(style: Style, method: str, chosen: Chosen, unit: float = 1e6) -> Line:
    """Smoothed per seed, at most 200 points, mean over seeds with the 68% bootstrap interval."""
    places = thin(len(chosen.frames))
    smoothed = np.array([smooth(seed) for seed in chosen.curves])[:, places]
    interval = bootstrap_interval(smoothed)
    frames = chosen.frames[places] / unit
    return Line(style, frames, *interval, method, len(smoothed), chosen.rate, chosen.source)


@dataclass(frozen=True)
class CurvePanel:
    """Return of a meta-episode against frames of training, each method at its best rate."""

    name: str
    title: str
    entries: tuple[Entry, ...]
    marks: tuple[Mark, ...] = ()
    x_label: str = "frames (millions)"
    y_label: str = "return of a meta-episode"
    log: bool = False

    def lines(self, evidence: Evidence) -> list[Line]:
        pairs = [(entry, evidence.shown(entry.series)) for entry in self.entries]
        return [learning_curve(e.style, e.series.method, c) for e, c in pairs if c is not None]

    def missing(self, evidence: Evidence) -> Missing:
        return Missing(series=tuple(s for s, _ in self.entries if evidence.lacks(s)))


@dataclass(frozen=True)
class AnalysisPanel:
    """Values of an analysis against steps, mean over seeds with the 68% bootstrap interval."""

    name: str
    title: str
    made: Made
    methods: tuple[str, ...]
    y_label: str
    x_label: str = "step"
    log: bool = False
    marks: tuple[Mark, ...] = ()

    def lines(self, evidence: Evidence) -> list[Line]:
        found = []
        for method in self.methods:
            analysis = evidence.analysis(*self.made, method)
            if analysis is not None:
                steps, curves = self.curves(analysis)
                about = (method, len(curves))
                found.append(Line(style_of(method), steps, *bootstrap_interval(curves), *about))
        return found

    def curves(self, analysis: Analysis) -> tuple[np.ndarray, np.ndarray]:
        """(steps [P], a curve for each seed [S, P])."""
        return analysis.steps, analysis.values.mean(axis=1)

    def missing(self, evidence: Evidence) -> Missing:
        if self.lines(evidence):
            return Missing()
        trained = () if self.made.when == START else self.methods
        asked = [Series(self.made.when, method) for method in trained]
        return Missing(tuple(s for s in asked if evidence.lacks(s)), (self.made,))


DIMENSION = Style("one dimension", "#999999")
MEAN = Style("mean of the dimensions", "#000000", SOLID)


@dataclass(frozen=True)
class DimensionsPanel(AnalysisPanel):
    """Every dimension of the first seed thin, their mean over all seeds thick."""

    methods: tuple[str, ...] = field(default=("pearl",))
    y_label: str = "variance of the latent"
    x_label: str = "environment steps"

    def lines(self, evidence: Evidence) -> list[Line]:
        found = []
        for thick in super().lines(evidence):
            analysis = evidence.analysis(*self.made, thick.method)
            dimensions = [] if analysis is None else analysis.values[0]
            for index, row in enumerate(dimensions):
                about = (thick.method, 1, None, f"dimension {index}", 0.7, index == 0)
                found.append(Line(DIMENSION, thick.x, row, row, row, *about))
            found.append(thick._replace(style=MEAN, source="mean"))
        return found


Panel = CurvePanel | AnalysisPanel


@dataclass(frozen=True)
class Figure:
    """Panels that are drawn side by side, with one legend."""

    name: str
    title: str
    where: str  # in the paper
    panels: tuple[Panel, ...]
    columns: int = 3

    def missing(self, evidence: Evidence) -> Missing:
        found = [panel.missing(evidence) for panel in self.panels]
        series, made = (
            tuple(x for part in parts for x in part) for parts in zip(*found, strict=True)
        )
        return Missing(series, made)


def curves(
    title: str, env: str, methods: Sequence[str], labels: dict[str, str] | None = None
) -> CurvePanel:
    """A panel of methods in their own styles; `labels` gives some another name, as the paper does."""
    styles = {method: style_of(method) for method in methods}
    styles |= {m: styles[m]._replace(label=text) for m, text in (labels or {}).items()}
    entries = tuple(Entry(Series(env, method), styles[method]) for method in methods)
    scale = SCALES.get(env)
    return CurvePanel(env, title, entries, marks(env, scale.best if scale else None))
