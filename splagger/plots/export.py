"""Writes figures to disk as PNG, PDF and CSV."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from splagger.files.storage import write_output, writing
from splagger.plots.draw import Drawn, picture
from splagger.plots.panels import Figure
from splagger.stats.evidence import Evidence

COLUMNS = ("panel", "label", "method", "rate", "seeds", "source", "x", "mean", "low", "high")


def drawable(figure: Figure, evidence: Evidence) -> Drawn:
    """Returns the panels that have lines, with these lines."""
    pairs = [(panel, panel.lines(evidence)) for panel in figure.panels]
    return [(panel, lines) for panel, lines in pairs if lines]


def table(drawn: Drawn) -> str:
    """Returns every point of every line as CSV, with six significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for panel, lines in drawn:
        for line in lines:
            rate = "" if line.rate is None else f"{line.rate:g}"
            about = (panel.name, line.style.label, line.method, rate, line.seeds, line.source)
            for values in zip(line.x, line.mean, line.low, line.high, strict=True):
                writer.writerow((*about, *(f"{value:.6g}" for value in values)))
    return text.getvalue()


def save(figure: Figure, evidence: Evidence, folder: str | Path) -> list[Path]:
    """Writes <folder>/<figure>.png, .pdf and .csv, and returns their paths; none if there are no lines."""
    drawn = drawable(figure, evidence)
    if not drawn:
        return []
    contents = {kind: picture(figure, drawn, kind) for kind in ("png", "pdf")}
    contents["csv"] = table(drawn).encode()
    return write_all(folder, {f"{figure.name}.{kind}": data for kind, data in contents.items()})


def write_all(folder: str | Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Writes files by name into a folder, which is created; returns their paths."""
    paths = [Path(folder) / name for name in contents]
    with writing(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, data in zip(paths, contents.values(), strict=True):
            write_output(path, data)
    return paths
