"""How the return of a meta-episode adds up, drawn from the files of the analysis."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splagger.figures.draw import picture
from splagger.figures.evidence import Evidence
from splagger.figures.panels import START, AnalysisPanel, Figure, Line, Made
from splagger.figures.scales import STOPS
from splagger.figures.stats import bootstrap_interval
from splagger.figures.styles import DOTTED, Style, style_of


@dataclass(frozen=True)
class AdaptationPanel(AnalysisPanel):
    """The return so far against the step of the meta-episode, and that of policies which never get to know their
    task: a straight line. Whoever learns within the task bends upward."""

    y_label: str = "return so far"
    x_label: str = "step of the meta-episode"

    def lines(self, evidence: Evidence) -> list[Line]:
        found = []
        for method in self.methods:
            analysis = evidence.analysis(*self.made, method)
            if analysis is not None:
                earned = np.pad(
                    analysis.values.mean(axis=1), ((0, 0), (1, 0))
                )  # [seeds, 1 + steps]
                so_far = np.cumsum(earned, axis=1)
                about = (method, len(so_far))
                interval = bootstrap_interval(so_far)
                found.append(Line(style_of(method), np.arange(so_far.shape[1]), *interval, *about))
        for mark in STOPS.get(self.made.when, ()) if found else ():
            steps = np.array([0.0, found[0].x[-1]])
            straight = np.array([0.0, mark.value])
            style = Style(mark.label, "#000000", DOTTED)
            found.append(Line(style, steps, straight, straight, straight, "", 0, width=1.0))
        return found


def draw_adaptation(folder: str | Path) -> list[Path]:
    """Draws adaptation.png beside the files."""
    folder = Path(folder)
    evidence = Evidence([], analyses=folder.parent.parent)
    made = Made(folder.parent.name, folder.name)
    about = evidence.analyses_made()[made]
    where = f"{about['options']['env']}, untrained" if made.when == START else made.when
    panel = AdaptationPanel(
        made.name, f"Return within a task · {where}", made, tuple(about["agents"])
    )
    path = folder / "adaptation.png"
    figure = Figure(made.name, panel.title, "", (panel,))
    path.write_bytes(picture(figure, [(panel, panel.lines(evidence))], "png"))
    return [path]
