"""The picture of the cumulative return within a meta-episode, from the files of the analysis."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splagger.paper_numbers import PROTOCOLS, ReferenceLine
from splagger.plots.curves import distinct
from splagger.plots.draw import picture
from splagger.plots.panels import AnalysisPanel, Figure, Line
from splagger.plots.styles import DOTTED, Style
from splagger.runs.analyses import INITIALIZATION, AnalysisKey, read_description
from splagger.stats.evidence import AnalysisValues, Evidence


@dataclass(frozen=True)
class AdaptationPanel(AnalysisPanel):
    """Cumulative return against the step of the meta-episode.

    Policies that do not adapt to their task give a straight line (`plateaus`). The curve of an agent that adapts
    bends upward.
    """

    y_label: str = "cumulative return"
    plateaus: tuple[ReferenceLine, ...] = ()

    def curves(self, values: AnalysisValues) -> tuple[np.ndarray, np.ndarray]:
        cumulative = np.cumsum(values.values.mean(axis=1), axis=1)
        return np.arange(cumulative.shape[1] + 1), np.pad(cumulative, ((0, 0), (1, 0)))

    def lines(self, evidence: Evidence) -> list[Line]:
        found = distinct(super().lines(evidence))
        return found + [_straight(p, float(found[0].x[-1])) for p in self.plateaus if found]


def _straight(plateau: ReferenceLine, steps: float) -> Line:
    x, y = np.array([0.0, steps]), np.array([0.0, plateau.value])
    return Line(Style(plateau.label, "#000000", DOTTED), x, y, y, y, "", 0, width=1.0)


def draw_adaptation(folder: str | Path) -> list[Path]:
    """Draws adaptation.png into the folder of an analysis and returns its path."""
    folder = Path(folder)
    about = read_description(folder)
    protocol = PROTOCOLS.get(about["env"])
    panel = AdaptationPanel(
        "adaptation",
        f"Return within a task · {about['env']}{', untrained' if about['when'] == INITIALIZATION else ''}",
        AnalysisKey(folder.parent.name, folder.name),
        tuple(about["agents"]),
        x_label=f"step of the meta-episode (mean of {about['sequences']} tasks)",
        plateaus=protocol.plateaus if protocol and about["usual"] else (),
    )
    lines = panel.lines(Evidence([], analyses=folder.parent.parent))
    path = folder / "adaptation.png"
    path.write_bytes(
        picture(Figure(panel.name, panel.title, "", (panel,)), [(panel, lines)], "png")
    )
    return [path]
