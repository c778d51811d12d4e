"""Draws the picture of docs/fidelity.md: `python -m docs.draw_fidelity`."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from docs.fidelity_tables import MC_LS, mc_ls_curves
from splagger.paper_numbers import SCALES
from splagger.plots.draw import STYLE, encoded
from splagger.plots.styles import style_of

IMAGES = Path(__file__).parent / "images"
FIRST = 3e6  # frames that the left panel shows
LOWEST = 13.0  # the darkest color of the right panel; half of the best return


def falls_picture() -> bytes:
    """Returns the first frames of the whole runs on MC-LS, and every evaluation of every agent."""
    tables = {
        method: mc_ls_curves(method).pivot_table(index="seed", columns="frames", values="return")
        for method in MC_LS
    }
    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=(9.6, 3.6), layout="constrained")
        left, right = canvas.subplots(1, 2, width_ratios=(1, 1.6))
        _first_frames(left, tables)
        shades = _strips(right, tables)
        canvas.colorbar(shades, ax=right, label="return", extend="min", pad=0.02)
        return encoded(canvas, "svg")


def _first_frames(axes: Any, tables: dict[str, Any]) -> None:
    for method, table in tables.items():
        mean = table.loc[:, table.columns <= FIRST].mean()
        label, color, dash = style_of(method)
        axes.plot(mean.index / 1e6, mean, label=label, color=color, linestyle=dash, linewidth=1.4)
    axes.axhline(SCALES["mc-ls"].best, color="black", linestyle=":", linewidth=1)
    axes.set(xlabel="frames (millions)", ylabel="return per meta-episode, mean of agents")
    axes.set(title="MC-LS, the first 5% of training", xlim=(0, FIRST / 1e6))
    axes.legend(loc="lower right", fontsize=8)


def _strips(axes: Any, tables: dict[str, Any]) -> Any:
    """Draws one row per agent, dark where it earns little; returns the image."""
    returns = np.concatenate([table.to_numpy() for table in tables.values()])
    frames = next(iter(tables.values())).columns
    extent = (0, frames[-1] / 1e6, len(returns), 0)
    limits = {"vmin": LOWEST, "vmax": SCALES["mc-ls"].best}
    image = axes.imshow(
        returns, aspect="auto", extent=extent, cmap="YlOrBr_r", interpolation="nearest", **limits
    )
    ends = np.cumsum([len(table) for table in tables.values()])
    for end in ends[:-1]:
        axes.axhline(end, color="white", linewidth=3)
    middles = ends - np.array([len(table) for table in tables.values()]) / 2
    axes.set_yticks(middles, [style_of(method).label for method in tables])
    axes.set(xlabel="frames (millions)", title="Every evaluation, one row per agent")
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    return image


def main() -> None:
    (IMAGES / "mc-ls-falls.svg").write_bytes(falls_picture())


if __name__ == "__main__":
    main()
