"""Draws docs/images/map.svg, the rooms of the package and their imports: `python -m docs.draw_map`."""

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from splagger.plots.draw import METADATA, STYLE
from tests.test_layers import ROOMS, rooms_imported

TARGET = Path(__file__).parent / "images" / "map.svg"

# Rows of the picture, from what everything rests on to what rests on everything.
ROWS = (
    (
        "errors",
        "ranges",
        "files",
        "identity",
        "tables",
        "spaces",
        "images",
        "zoo",
        "paper_numbers",
        "gymnasium_ids",
    ),
    ("portable", "vision", "nn"),
    ("policy", "memory", "aggregators"),
    ("methods", "network", "agent", "envs"),
    ("bridges", "registry", "ppo"),
    ("runs", "status", "hosts", "training", "launchers", "agents", "analysis"),
    ("stats", "plots", "paper", "report", "inspection", "cli"),
)
LABELS = ("basics", "layers", "networks", "agent and tasks", "learning", "experiments", "results")
WIDTH = 14.6
ROW_HEIGHT = 1.35
HALF_HEIGHT = 0.3
CENTERS = {
    room: ((column + 0.5) * WIDTH / len(row) + 1.6, -ROW_HEIGHT * index)
    for index, row in enumerate(ROWS)
    for column, room in enumerate(row)
}
COLORS = ("#eceff3", "#dbe9f6", "#d8f0e6", "#fdf1d6", "#fbe3d4", "#f2dfee", "#e3e8ef")


def arrows() -> list[tuple[str, str]]:
    """(importing room, imported room), without those that follow from others."""
    direct = {room: set(rooms_imported(room)) & set(ROOMS) - {room} for room in ROOMS}

    def reach(room: str) -> set[str]:
        return direct[room].union(*(reach(other) for other in direct[room]))

    basics = set(ROWS[0])  # everything may use these: arrows to them would only hide the others
    return [
        (room, other)
        for room in ROOMS
        for other in sorted(direct[room] - basics)
        if not any(other in reach(middle) for middle in direct[room] - {other})
    ]


def half_width(row: tuple[str, ...]) -> float:
    """Half the width of this row's boxes, which leaves room for an arrow between two of them."""
    return min(1.9, WIDTH / len(row) - 0.3) / 2


def draw_arrow(axes: Axes, room: str, other: str) -> None:
    """From `room` to `other`. Arrows within a row that pass other rooms bow above them."""
    (x, y), (to_x, to_y) = CENTERS[room], CENTERS[other]
    row = ROWS[round(-y / ROW_HEIGHT)]
    toward = 1 if to_x > x else -1
    bend = 0.0
    if y != to_y:
        start, end = (x, y + HALF_HEIGHT), (to_x, to_y - HALF_HEIGHT)
    elif abs(row.index(room) - row.index(other)) == 1:
        start, end = (x + half_width(row) * toward, y), (to_x - half_width(row) * toward, to_y)
    else:
        start, end = (x + 0.3 * toward, y + HALF_HEIGHT), (to_x - 0.3 * toward, to_y + HALF_HEIGHT)
        bend = -0.2 * toward
    look = {"arrowstyle": "-|>", "color": "#59636e", "linewidth": 0.9, "shrinkA": 0, "shrinkB": 1}
    axes.annotate(
        "", end, start, arrowprops=look | {"connectionstyle": f"arc3,rad={bend}"}, zorder=1
    )


def draw() -> None:
    with matplotlib.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(12, 6.6), layout="constrained")
        axes = figure.subplots()
        for room, other in arrows():
            draw_arrow(axes, room, other)
        for row, label, color in zip(ROWS, LABELS, COLORS, strict=True):
            axes.text(0.1, CENTERS[row[0]][1], label, va="center", color="#59636e", fontsize=9)
            for room in row:
                (x, y), half = CENTERS[room], half_width(row)
                corner = (x - half + 0.1, y - HALF_HEIGHT + 0.1)
                size = (2 * half - 0.2, 2 * HALF_HEIGHT - 0.2)
                axes.add_patch(
                    FancyBboxPatch(corner, *size, "round,pad=0.1", fc=color, ec="#59636e", zorder=2)
                )
                axes.text(
                    x,
                    y,
                    room,
                    ha="center",
                    va="center",
                    weight="bold",
                    fontsize=9 if len(room) < 11 else 7,
                    zorder=3,
                )
        axes.set(xlim=(0, WIDTH + 1.8), ylim=(-ROW_HEIGHT * (len(ROWS) - 1) - 0.5, 0.5))
        axes.axis("off")
        figure.savefig(TARGET, metadata=METADATA["svg"])


if __name__ == "__main__":
    assert {room for row in ROWS for room in row} == set(ROOMS), "a room is missing in ROWS"
    draw()
    print(TARGET.relative_to(TARGET.parents[2]))
