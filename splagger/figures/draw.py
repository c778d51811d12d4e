"""Learning curves, drawn to be read: direct labels, colors that everybody can tell apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splagger.figures.stats import bootstrap_interval, smooth

# Okabe and Ito's palette, which stays apart for color-blind readers; black is for reference lines
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")


class Curve(NamedTuple):
    """One method at one rate: its seeds' returns at the same frames."""

    label: str
    frames: np.ndarray  # [T]
    returns: np.ndarray  # [S, T]


def curve_of(label: str, rows: Sequence[dict[str, Any]], rate: float) -> Curve:
    """The curve of one rate out of a run's rows; seeds that stopped early are left out."""
    mine = [row for row in rows if row["rate"] == rate]
    frames = sorted({row["frames"] for row in mine})
    members: dict[tuple, dict[int, float]] = {}
    for row in mine:
        key = tuple(row[k] for k in ("seed", "entropy_weight", "kl_weight", "temperature"))
        members.setdefault(key, {})[row["frames"]] = row["return"]
    whole = [[m[f] for f in frames] for m in members.values() if len(m) == len(frames)]
    return Curve(label, np.array(frames, float), np.array(whole).reshape(-1, len(frames)))


def draw_curves(
    curves: Sequence[Curve], path: str | Path, title: str = "", best: float | None = None
) -> None:
    """Mean over seeds with the 68% bootstrap interval, smoothed, as PNG, PDF or SVG by the path's ending."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
        unit, unit_name = _unit(max(curve.frames[-1] for curve in curves))
        if best is not None:
            axes.axhline(best, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
            axes.annotate(
                "best possible", (0, best), (2, 3), textcoords="offset points", fontsize=8
            )
        ends = []
        for color, curve in zip(_colors(len(curves)), curves, strict=True):
            smoothed = np.array([smooth(seed) for seed in curve.returns])
            low, mean, high = bootstrap_interval(smoothed)
            axes.plot(curve.frames / unit, mean, color=color, linewidth=2)
            axes.fill_between(curve.frames / unit, low, high, color=color, alpha=0.2, linewidth=0)
            ends.append((mean[-1], curve.label, color))
        _label_ends(axes, ends)
        axes.set(title=title, xlabel=f"frames ({unit_name})", ylabel="return of a meta-episode")
        axes.margins(x=0)
        figure.savefig(path, dpi=200)
        plt.close(figure)


def _label_ends(axes, ends) -> None:
    """Names beside the lines' ends, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = 0.07 * (high - low)
    ends = sorted(ends)
    places = [value for value, _, _ in ends]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    places[-1] = min(places[-1], high)
    for i in reversed(range(len(places) - 1)):
        places[i] = min(places[i], places[i + 1] - gap)
    for place, (_, label, color) in zip(places, ends, strict=True):
        axes.annotate(
            label,
            (1, place),
            (6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            color=color,
            va="center",
            weight="bold",
        )


def _unit(frames: float) -> tuple[float, str]:
    return (1e6, "millions") if frames >= 1e6 else (1e3, "thousands")


def _colors(count: int) -> list[str]:
    return [PALETTE[i % len(PALETTE)] for i in range(count)]


STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}
