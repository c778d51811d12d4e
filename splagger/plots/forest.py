"""Forest plots: one row per statement, with its intervals and the region in which it holds."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from splagger.plots.draw import STYLE, encoded
from splagger.tables import count

# Sizes in inches. Text is placed by hand, since statements are wrapped and rows differ in height.
LINE, GAP = 0.155, 0.11  # heights of a line of text or an interval, and between rows
HEAD, TITLE, AXIS = 0.55, 0.35, 0.6  # above all panels, and above and below each
LISTED, PAUSE = 0.13, 0.03  # heights of a line of the list, and between its rows
REGION = "#dfeee9"


class Layout(NamedTuple):
    """Widths of the picture, of the statements left of the panels, and of the intervals' names on their right."""

    width: float
    left: float
    right: float
    wrap: int  # characters per line of a statement
    above: bool  # whether statements are above their intervals
    columns: int  # of the list and of the legend

    @property
    def panel(self) -> float:
        return self.width - self.left - self.right


WIDE = Layout(11.0, 5.2, 1.8, 80, above=False, columns=2)
NARROW = Layout(4.5, 0.15, 1.5, 66, above=True, columns=1)  # for phones


class Look(NamedTuple):
    """How an outcome is drawn."""

    label: str
    color: str
    marker: str  # of an interval
    symbol: str  # before a statement


class Interval(NamedTuple):
    """An effect with its interval."""

    label: str
    low: float
    value: float
    high: float
    look: Look


class ForestRow(NamedTuple):
    """A statement, the region (low, high) in which it holds, and its intervals."""

    statement: str
    region: tuple[float, float]
    intervals: tuple[Interval, ...]
    look: Look

    def height(self, layout: Layout) -> float:
        lines, intervals = len(textwrap.wrap(self.statement, layout.wrap)), len(self.intervals)
        return LINE * (lines + intervals if layout.above else max(lines, intervals)) + GAP


class ForestPanel(NamedTuple):
    """Rows whose effects have the same unit."""

    title: str
    unit: str
    rows: tuple[ForestRow, ...]

    def height(self, layout: Layout) -> float:
        return sum(row.height(layout) for row in self.rows)


def forest_picture(
    panels: Sequence[ForestPanel],
    looks: Sequence[Look],
    listed: Sequence[str],
    kind: str,
    layout: Layout = WIDE,
) -> bytes:
    """Draws the panels below each other as PNG, PDF or SVG; `listed` statements without data follow."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    wrapped = [textwrap.wrap(text, int(1.2 * layout.wrap)) for text in listed]
    rows = [wrapped[i : i + layout.columns] for i in range(0, len(wrapped), layout.columns)]
    foot = sum(LISTED * max(map(len, row)) + PAUSE for row in rows) + 0.5 * bool(rows)
    height = HEAD + sum(TITLE + panel.height(layout) + AXIS for panel in panels) + foot
    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(layout.width, height))
        _legend(canvas, looks, layout)
        top = height - HEAD
        for panel in panels:
            top -= TITLE + panel.height(layout)
            box = (layout.left / layout.width, top / height, layout.panel / layout.width)
            _panel(canvas.add_axes((*box, panel.height(layout) / height)), panel, layout)
            top -= AXIS
        if rows:
            _list(canvas, rows, top - 0.1, f"Without data: {count(len(listed), 'claim')}", layout)
    return encoded(canvas, kind)


def _legend(canvas: Any, looks: Sequence[Look], layout: Layout) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], color=look.color, marker=look.marker, linewidth=2, label=look.label)
        for look in looks
    ]
    handles.append(Patch(facecolor=REGION, label="region of the claim"))
    small = {"fontsize": 7, "columnspacing": 1.0, "handlelength": 1.6} if layout.above else {}
    canvas.legend(handles=handles, loc="upper left", ncols=len(handles), **small)


def _panel(axes: Any, panel: ForestPanel, layout: Layout) -> None:
    """Draws one panel; its vertical unit is an inch, downward."""
    low, high = _limits(panel)
    axes.set(xlim=(low, high), ylim=(panel.height(layout), 0), yticks=[])
    axes.set_xlabel(panel.unit, fontsize=7 if layout.above else 9)
    if high - low > 6:  # a few large effects would hide the others
        axes.set_xscale("symlog", linthresh=1.0)
        axes.set_xticks([x for x in (-10, -5, -2, -1, 0, 1, 2, 5, 10) if low < x < high])
        axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(not layout.above)  # it would cross the statements
    axes.spines["left"].set_visible(False)
    axes.text(0.1 - layout.left, -0.14, panel.title, weight="bold", transform=_inches(axes, layout))
    axes.axvline(0, color="#888888", linewidth=0.8, linestyle=(0, (1, 2)))
    top = 0.0
    for row in panel.rows:
        _row(axes, row, top, (low, high), layout)
        top += row.height(layout)


def _limits(panel: ForestPanel) -> tuple[float, float]:
    """Returns the ends of the axis: all intervals, all finite ends of regions and zero, with a margin."""
    values = [x for row in panel.rows for i in row.intervals for x in (i.low, i.high)]
    values += [x for row in panel.rows for x in row.region if math.isfinite(x)]
    low, high = min(0.0, *values), max(0.0, *values)
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def _row(axes: Any, row: ForestRow, top: float, ends: tuple[float, float], layout: Layout) -> None:
    """Draws the statement, its region and its intervals with their names."""
    lines, height = textwrap.wrap(row.statement, layout.wrap), row.height(layout)
    low, high = max(row.region[0], ends[0]), min(row.region[1], ends[1])
    bottom = top + height - GAP / 4
    start = bottom - GAP / 4 - LINE * len(row.intervals) if layout.above else top + GAP / 4
    axes.fill_betweenx([start, bottom], low, high, color=REGION, linewidth=0)
    label = top + GAP / 2 + LINE * len(lines) / 2 if layout.above else top + height / 2
    text = {"fontsize": 8, "va": "center", "linespacing": 1.15, "transform": _inches(axes, layout)}
    symbol = {"color": row.look.color, "weight": "bold"}
    axes.text(0.12 - layout.left, label, row.look.symbol, **text, **symbol)
    axes.text(0.32 - layout.left, label, "\n".join(lines), **text)
    name = text | {"fontsize": 7, "color": "#444444"}
    first = (start + bottom) / 2 - LINE * (len(row.intervals) - 1) / 2
    for index, one in enumerate(row.intervals):
        y = first + LINE * index
        axes.plot([one.low, one.high], [y, y], color=one.look.color, linewidth=2)
        axes.plot(one.value, y, one.look.marker, color=one.look.color, markersize=4.5)
        axes.text(layout.panel + 0.1, y, one.label, **name)


def _inches(axes: Any, layout: Layout) -> Any:
    """Returns a transform: x in inches from the panel's left edge, y in the panel's own unit."""
    from matplotlib.transforms import Affine2D, blended_transform_factory

    across = Affine2D().scale(1 / layout.panel, 1) + axes.transAxes
    return blended_transform_factory(across, axes.transData)


def _list(canvas: Any, rows: Sequence, top: float, title: str, layout: Layout) -> None:
    """Writes the statements without data below the panels; `rows` contain wrapped statements."""
    width, height = canvas.get_size_inches()
    canvas.text(0.12 / width, top / height, title, weight="bold", va="top")
    top -= 0.25
    for row in rows:
        for column, lines in enumerate(row):
            x = 0.12 / width + column / layout.columns
            text = "\n".join(lines)
            canvas.text(x, top / height, text, fontsize=7, va="top", color="#444444")
        top -= LISTED * max(map(len, row)) + PAUSE
