"""How the return of a meta-episode adds up, drawn from the files of the analysis."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splagger.figures.curves import distinct
from splagger.figures.draw import picture
from splagger.figures.evidence import Analysis, Evidence
from splagger.figures.panels import START, AnalysisPanel, Figure, Line, Made
from splagger.figures.scales import STOPS, Mark
from splagger.figures.styles import DOTTED, Style


@dataclass(frozen=True)
class AdaptationPanel(AnalysisPanel):
    """The return so far against the step of the meta-episode, and that of policies that use nothing they have seen
    of their task: a straight line. Whoever learns within the task bends upward."""

    y_label: str = "return so far"
    stops: tuple[Mark, ...] = ()

    def curves(self, analysis: Analysis) -> tuple[np.ndarray, np.ndarray]:
        so_far = np.cumsum(analysis.values.mean(axis=1), axis=1)
        return np.arange(so_far.shape[1] + 1), np.pad(so_far, ((0, 0), (1, 0)))

    def lines(self, evidence: Evidence) -> list[Line]:
        found = distinct(super().lines(evidence))
        return found + [_straight(mark, float(found[0].x[-1])) for mark in self.stops if found]


def _straight(mark: Mark, steps: float) -> Line:
    x, y = np.array([0.0, steps]), np.array([0.0, mark.value])
    return Line(Style(mark.label, "#000000", DOTTED), x, y, y, y, "", 0, width=1.0)


def draw_adaptation(folder: str | Path) -> list[Path]:
    """Draws adaptation.png beside the files."""
    folder = Path(folder)
    about = json.loads((folder / "analysis.json").read_text())
    panel = AdaptationPanel(
        "adaptation",
        f"Return within a task · {about['env']}{', untrained' if about['when'] == START else ''}",
        Made(folder.parent.name, folder.name),
        tuple(about["agents"]),
        x_label=f"step of the meta-episode (mean of {about['sequences']} tasks)",
        stops=STOPS.get(about["env"], ()) if about["usual"] else (),
    )
    lines = panel.lines(Evidence([], analyses=folder.parent.parent))
    path = folder / "adaptation.png"
    path.write_bytes(
        picture(Figure(panel.name, panel.title, "", (panel,)), [(panel, lines)], "png")
    )
    return [path]
