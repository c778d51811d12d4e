"""Draws how agents learn to learn, from benchmarks/results/snapshots.json: `python -m docs.draw_snapshots`."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from docs.table_parts import measured
from splagger.plots.draw import STYLE, encoded
from splagger.plots.styles import style_of

PICTURE = Path(__file__).parent / "images" / "snapshots.svg"


def snapshots_picture() -> bytes:
    """Returns the return of each episode of a task, one line per snapshot and one panel per method."""
    rows = measured("snapshots")["rows"]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    longest = max(row["frames"] for row in rows)
    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=(8.2, 3.2), layout="constrained")
        panels = canvas.subplots(1, len(methods), sharey=True)
        shades = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(0, longest / 1e6))
        shades.set_cmap("viridis_r")
        for axes, method in zip(panels, methods, strict=True):
            for row in (row for row in rows if row["method"] == method):
                episodes = np.arange(1, len(row["episodes"]) + 1)
                color = shades.to_rgba(row["frames"] / 1e6)
                axes.plot(episodes, row["episodes"], color=color, linewidth=1.4, marker=".")
            axes.set(xlabel="episode of a task", title=style_of(method).label)
        panels[0].set_ylabel("return")
        canvas.colorbar(shades, ax=panels, label="million frames of training", pad=0.02)
        return encoded(canvas, "svg")


if __name__ == "__main__":
    PICTURE.write_bytes(snapshots_picture())
    print(PICTURE)
