"""`plot`: the learning curves of any runs in one picture."""

from pathlib import Path
from typing import Any

from splagger.errors import RunError
from splagger.files.storage import write_output, writing
from splagger.paper_numbers import PROTOCOLS, ReferenceLine, reference_lines
from splagger.plots.curves import curves_of, with_distinct_colors
from splagger.plots.draw import METADATA, canvas_of, encoded
from splagger.plots.panels import Figure
from splagger.runs.record import RunRecord
from splagger.stats.evidence import Evidence
from splagger.stats.variants import variants

MOST = 12  # panels of a picture


def plot(*roots: Any, path: str | Path | None = None) -> Any:
    """Draws the learning curves of the runs below `roots` (folders, results of `splagger.train`, lists of these), one panel per environment; returns a matplotlib Figure.

    Each method with its settings is one line, at its best rate, on fresh seeds if there are any. With a `path`, the
    figure is also written there as PNG, PDF or SVG. Notebooks show the figure, with or without pyplot.
    """
    runs = Evidence.read_every(*roots).runs
    found = variants(runs)
    names = sorted({one.env for one in found})
    if len(names) > MOST:
        raise RunError(
            f"a plot shows at most {MOST} environments, these are {', '.join(names)}; plot some of them at a time"
        )
    kind = "" if path is None else Path(path).suffix.lstrip(".").lower()
    if path is not None and kind not in METADATA:
        raise RunError(f"{path} must end in one of {', '.join(METADATA)}")
    panels = [
        curves_of(
            [one for one in found if one.env == env],
            _references([run.record for run in runs if run.record.env == env]),
        )
        for env in names
    ]
    drawn = with_distinct_colors(panels)
    title = ", ".join(panel.title for panel, _ in drawn)
    canvas = canvas_of(Figure(title, title, "", tuple(panel for panel, _ in drawn)), drawn)
    if path is not None:
        with writing(path):
            write_output(path, encoded(canvas, kind))
    return canvas


def _references(records: list[RunRecord]) -> tuple[ReferenceLine, ...]:
    """Returns the environment's reference lines if all runs used its registered settings."""
    protocol = PROTOCOLS.get(records[0].env)
    changed = [r for r in records if any(name.startswith("env.") for name in r.overrides)]
    changed += [r for r in records if protocol and r.episodes not in (None, protocol.episodes)]
    return () if changed else reference_lines(records[0].env)
