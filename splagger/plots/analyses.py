"""The picture of an analysis whose values are curves over the steps of a sequence, from the files of the analysis."""

from pathlib import Path

from splagger.plots.curves import distinct
from splagger.plots.draw import picture
from splagger.plots.panels import AnalysisPanel, DimensionsPanel, Figure
from splagger.runs.analyses import INITIALIZATION, AnalysisKey, read_description
from splagger.stats.evidence import Evidence

# Analysis → (title, y label, whether the y axis is logarithmic)
LABELS = {
    "gradient-first": ("Gradient of each output for the first input", "gradient norm", True),
    "gradient-parameters": ("Gradient of each output for the parameters", "gradient norm", True),
    "gradient-inputs": ("Gradient of the last output for each input", "gradient norm", True),
    "permutation": ("Outputs for two orders of the same inputs", "distance", False),
    "pearl-variance": ("Variance of the belief", "variance", False),
}


def draw_analysis(folder: str | Path) -> list[Path]:
    """Draws <analysis>.png into the folder of an analysis and returns its path; nothing for other analyses."""
    folder = Path(folder)
    name = folder.parent.name
    if name not in LABELS:
        return []
    about, (title, label, log) = read_description(folder), LABELS[name]
    when = "untrained" if folder.name == INITIALIZATION else folder.name
    kind = DimensionsPanel if name == "pearl-variance" else AnalysisPanel
    key, methods = AnalysisKey(name, folder.name), tuple(about["agents"])
    panel = kind(name, f"{title} · {when}", key, methods, label, log=log)
    lines = panel.lines(Evidence([], analyses=folder.parent.parent))
    shown = lines if kind is DimensionsPanel else distinct(lines)
    path = folder / f"{name}.png"
    path.write_bytes(picture(Figure(name, panel.title, "", (panel,)), [(panel, shown)], "png"))
    return [path]
