"""Draws docs/images/map.svg, the rooms of the package and their imports: `python -m docs.draw_map`."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from splagger.plots.draw import METADATA, STYLE
from tests.test_layers import ROOMS, rooms_imported

TARGET = Path(__file__).parent / "images" / "map.svg"

# Rows of the picture, from what everything rests on to what rests on everything.
ROWS = (
    ("errors", "ranges", "files", "tables", "spaces", "images", "paper_numbers", "gymnasium_ids"),
    ("nn", "vision", "portable", "zoo"),
    ("memory", "aggregators", "policy"),
    ("methods", "network", "agent", "envs"),
    ("ppo", "registry", "bridges"),
    ("runs", "status", "hosts", "training", "launchers", "agents", "analysis"),
    ("stats", "plots", "paper", "report", "inspection", "cli"),
)
LABELS = ("basics", "layers", "networks", "agent and tasks", "learning", "experiments", "results")
WIDTH = 14.6
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


def centers() -> dict[str, tuple[float, float]]:
    """Room → the middle of its box."""
    return {
        room: ((column + 0.5) * WIDTH / len(row) + 1.6, -1.35 * index)
        for index, row in enumerate(ROWS)
        for column, room in enumerate(row)
    }


def draw() -> None:
    with matplotlib.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(12, 7.2), layout="constrained")
        axes = figure.subplots()
        places = centers()
        for room, other in arrows():
            (x, y), (to_x, to_y) = places[room], places[other]
            side = y == to_y
            toward = 1 if to_x > x else -1
            start = (x + 0.95 * toward, y) if side else (x, y + 0.32)
            end = (to_x - 0.95 * toward, to_y) if side else (to_x, to_y - 0.32)
            style = {"arrowstyle": "-|>", "color": "#59636e", "linewidth": 0.9, "shrinkB": 2}
            axes.annotate("", end, start, arrowprops=style)
        for index, row in enumerate(ROWS):
            axes.text(0.1, -1.35 * index, LABELS[index], va="center", color="#59636e", fontsize=9)
            for room in row:
                x, y = places[room]
                box = FancyBboxPatch(
                    (x - 0.85, y - 0.22), 1.7, 0.44, "round,pad=0.1", fc=COLORS[index], ec="#59636e"
                )
                axes.add_patch(box)
                axes.text(x, y, room, ha="center", va="center", weight="bold", fontsize=10)
        axes.set(xlim=(0, WIDTH + 1.8), ylim=(-1.35 * (len(ROWS) - 1) - 0.6, 0.6))
        axes.axis("off")
        figure.savefig(TARGET, metadata=METADATA["svg"])


if __name__ == "__main__":
    assert {room for row in ROWS for room in row} == set(ROOMS), "a room is missing in ROWS"
    draw()
    print(TARGET.relative_to(TARGET.parents[2]))
