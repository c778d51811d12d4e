"""Draws the picture of docs/cluster.md: `python -m docs.draw_cluster`."""

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from docs.table_parts import ROOT
from splagger.plots.draw import METADATA, STYLE

TARGET = ROOT / "docs" / "images" / "cluster.svg"
INK, SOFT, EDGE, PALE = "#1f2933", "#5f6b7a", "#9aa5b1", "#eef1f5"
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#7b4ea3"
FILLS = {BLUE: "#d3e6f2", ORANGE: "#f9dfcd", GREEN: "#d0ece3", PURPLE: "#e6dcf0"}
WIDTH, HEIGHT = 10.4, 5.5
MACHINES = ((0.35, "machine 1", True), (3.05, "machine 2", False), (5.75, "machine 3", True))
# Column of each experiment's worker and of its run folder, and its color.
RUNS = {"A": (0.5, BLUE), "B": (1.72, GREEN), "C": (5.9, ORANGE), "D": (7.12, PURPLE)}


def box(axes, x, y, width, height, fill=PALE, edge=EDGE, line=1.0, **more):
    style = "round,pad=0,rounding_size=0.07"
    axes.add_patch(
        FancyBboxPatch((x, y), width, height, boxstyle=style, fc=fill, ec=edge, lw=line, **more)
    )


def write(axes, x, y, text, size=9.5, color=INK, **more):
    axes.text(x, y, text, **{"size": size, "color": color, "ha": "center", "va": "center"} | more)


def arrow(axes, start, end, color=SOFT, bend=0.0, style="-|>", **more):
    shape = {"arrowstyle": style, "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0, "lw": 1.4}
    curve = f"arc3,rad={bend}"
    axes.add_patch(
        FancyArrowPatch(start, end, connectionstyle=curve, color=color, **(shape | more))
    )


def command(axes) -> None:
    """Draws the command and the scheduler, which hands out one task per experiment."""
    box(axes, 0.35, 4.83, 3.5, 0.5, "white", INK, 1.3)
    write(axes, 2.1, 5.08, "splagger sweep … --on ray", family="monospace", size=9)
    box(axes, 4.75, 4.83, 3.4, 0.5, "white", INK, 1.3)
    write(axes, 6.45, 5.08, "Ray or SLURM: one task per experiment")
    arrow(axes, (3.9, 5.08), (4.7, 5.08))
    for start, end in ((5.6, 1.6), (6.6, 7.0)):
        arrow(axes, (start, 4.8), (end, 4.25), EDGE)


def machine(axes, x: float, name: str, alive: bool) -> None:
    box(axes, x, 2.62, 2.5, 1.6, "white", INK if alive else EDGE, ls="-" if alive else "--")
    write(axes, x + 0.12, 4.04, name, 9, INK if alive else SOFT, ha="left", weight="bold")
    if not alive:
        write(axes, x + 1.25, 3.3, "removed: its experiments\ncontinue on other machines", 9, SOFT)


def worker(axes, name: str, x: float, color: str) -> None:
    """Draws the program of an experiment, its run folder, and what it writes there."""
    box(axes, x, 2.78, 0.98, 1.06, FILLS[color], color, 1.3)
    write(axes, x + 0.49, 3.62, f"run {name}", 9, color, weight="bold")
    write(axes, x + 0.49, 3.2, "one program:\nall rates\n× seeds", 7.8, SOFT, linespacing=1.25)
    arrow(axes, (x + 0.49, 2.75), (x + 0.49, 1.62), color)
    box(axes, x - 0.05, 0.52, 1.12, 1.07, "white", color, 1.3)
    files = "run.json\ncurves.csv\ncheckpoints/\nowner/"
    write(axes, x + 0.02, 1.06, files, 7.8, ha="left", linespacing=1.35, family="monospace")


def folder(axes) -> None:
    box(axes, 0.22, 0.18, 8.16, 1.66, PALE, EDGE)
    write(axes, 4.3, 1.28, "shared folder: --out", 9.5, weight="bold")
    write(
        axes,
        4.3,
        0.82,
        "It holds all state. The same command,\ngiven again, continues every run.",
        8.6,
        SOFT,
    )
    write(
        axes,
        4.3,
        2.2,
        "checkpoints: every two minutes,\nand after SIGTERM\nheartbeat: every five seconds",
        8.3,
        SOFT,
    )
    box(axes, 8.72, 0.52, 1.5, 1.07, "white", INK, 1.3)
    write(axes, 9.47, 1.26, "splagger status", 8.5, family="monospace")
    write(axes, 9.47, 0.86, "reads the\nfiles alone", 8.3, SOFT)
    arrow(axes, (8.42, 1.06), (8.69, 1.06))


def moved(axes) -> None:
    """Draws how run C came from the machine that is gone to another one."""
    arrow(axes, (5.1, 2.95), (5.86, 2.95), ORANGE, ls="--")
    write(axes, 5.02, 2.95, "run C", 8.5, ORANGE, ha="right")
    write(
        axes,
        8.42,
        3.5,
        "continues from\nits last\ncheckpoint:\nthe same bytes",
        8.3,
        ORANGE,
        ha="left",
    )


def draw() -> None:
    figure = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
    axes.axis("off")
    folder(axes)
    command(axes)
    for given in MACHINES:
        machine(axes, *given)
    for name, (x, color) in RUNS.items():
        worker(axes, name, x, color)
    moved(axes)
    with matplotlib.rc_context(STYLE):
        figure.savefig(TARGET, metadata=METADATA["svg"])


if __name__ == "__main__":
    draw()
    print(TARGET.relative_to(ROOT))
