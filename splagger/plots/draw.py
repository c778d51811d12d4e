"""Drawing of figures: the same lines give the same bytes."""

import functools as ft
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from splagger.plots.panels import Figure, Line, Panel

Drawn = Sequence[tuple[Panel, Sequence[Line]]]

# Files do not contain dates or versions, so that equal figures have equal bytes.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}

HALF = (0, (5, 5))  # the dashes of a line that would otherwise hide another
LOWEST = 1e-9  # the lower end of a logarithmic axis, as a fraction of the largest value
# Labels of reference lines: (fraction of the width, offset in points, alignment). The label of the best return is above
# its line on the left, where curves are far below; other labels are below their lines on the right.
BEST_LABEL = (0, (3, 2), {})
# Readable on any curve.
READABLE = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5}
PLATEAU_LABEL = (1, (-3, -3), {"ha": "right", "va": "top", "bbox": READABLE})
WIDTHS = {2: 4.2, 3: 3.6}  # number of columns → panel width in inches


def picture(figure: Figure, drawn: Drawn, kind: str) -> bytes:
    """Draws the panels of a figure side by side as PNG, PDF or SVG."""
    return encoded(canvas_of(figure, drawn), kind)


def encoded(canvas: Any, kind: str) -> bytes:
    """Returns a matplotlib Figure as PNG, PDF or SVG."""
    import matplotlib

    data = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        canvas.savefig(data, format=kind, dpi=200, metadata=METADATA[kind])
    return data.getvalue()


def canvas_of(figure: Figure, drawn: Drawn) -> Any:
    """Draws the panels of a figure side by side; returns a matplotlib Figure."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):
        columns = min(figure.columns, len(drawn))
        rows = -(-len(drawn) // columns)
        width = WIDTHS.get(columns, 3.6) * columns
        if len(drawn) == 1:  # its labels are beside the lines, and must leave them room
            longest = max((len(line.style.label) for line in drawn[0][1]), default=0)
            width = max(6.4, 3.6 + 0.09 * longest)
        size = (width, 2.8 * rows + 0.6)
        canvas = Canvas(figsize=size, layout="constrained")
        axes = canvas.subplots(rows, columns, squeeze=False)
        for one, (panel, lines) in zip(axes.flat, drawn, strict=False):
            _panel(one, panel, lines)
        for one in axes.flat[len(drawn) :]:
            one.set_visible(False)
        for row in axes:
            _label_once(row)
        _legend(canvas, axes.flat[0], drawn)
    setattr(canvas, "_repr_png_", ft.partial(encoded, canvas, "png"))  # noqa: B010, notebooks show it
    return canvas


def _panel(axes, panel: Panel, lines: Sequence[Line]) -> None:
    axes.set_yscale("log" if panel.log else "linear")
    below: list[Line] = []
    for line in reversed(lines):  # the first line is drawn on top
        hides = any(np.array_equal(line.mean, other.mean) for other in below)
        _line(axes, line, HALF if hides else line.style.dash, panel.log)
        below.append(line)
    if panel.log:
        axes.set_ylim(
            bottom=max(axes.get_ylim()[0], LOWEST * max(float(line.mean.max()) for line in lines))
        )
    for index, reference in enumerate(panel.reference_lines):
        axes.axhline(reference.value, color="black", linewidth=0.8, linestyle=(0, (1, 2)))
        x, offset, alignment = BEST_LABEL if index == 0 else PLATEAU_LABEL
        axes.annotate(
            reference.label,
            (x, reference.value),
            xycoords=("axes fraction", "data"),
            xytext=offset,
            textcoords="offset points",
            fontsize=8,
            **alignment,
        )
    smoothed = "\n(mean over a tenth of training)" if any(line.smoothed for line in lines) else ""
    axes.set(title=plain(panel.title), xlabel=panel.x_label, ylabel=panel.y_label + smoothed)
    axes.margins(x=0, y=0.09)


def _label_once(row) -> None:
    """Removes the label of the vertical axis from every panel of a row whose left neighbor has the same."""
    labels = [axes.get_ylabel() for axes in row]
    for axes, before, label in zip(row[1:], labels, labels[1:], strict=False):
        if label == before:
            axes.set_ylabel("")


def _line(axes, line: Line, dash, log: bool) -> None:
    """Draws a line with its interval. On a logarithmic axis it breaks at zeros; an isolated point becomes a dot."""
    color = line.style.color
    mean = np.where(line.mean > 0, line.mean, np.nan) if log else line.mean
    padded = np.isnan(np.pad(mean, 1, constant_values=np.nan))
    isolated = padded[:-2] & ~padded[1:-1] & padded[2:]
    axes.plot(line.x[isolated], mean[isolated], ".", color=color, markersize=7)
    axes.plot(line.x, mean, color=color, linestyle=dash, linewidth=line.width)
    axes.fill_between(line.x, line.low, line.high, color=color, alpha=0.18, linewidth=0)


def _legend(canvas, first, drawn: Drawn) -> None:
    """Draws one legend for all panels; a single panel has labels beside its lines instead."""
    named = [line for _, lines in drawn for line in lines if line.named]
    if len(drawn) == 1 and not drawn[0][0].log:
        return _beside(first, named)
    from matplotlib.lines import Line2D

    styles = {line.style: line.width for line in named}
    handles = [
        Line2D([], [], color=s.color, linestyle=s.dash, linewidth=w, label=plain(s.label))
        for s, w in styles.items()
    ]
    longest = max(len(style.label) for style in styles)
    columns = max(1, int(canvas.get_figwidth() / (0.6 + 0.085 * longest)))  # inches
    columns = -(-len(handles) // -(-len(handles) // columns))  # rows of equal length
    canvas.legend(handles=handles, loc="outside lower center", ncols=columns)


def plain(text: str) -> str:
    """Escapes dollar signs, which would otherwise start a formula."""
    return text.replace("$", r"\$")


def _beside(axes, lines: Sequence[Line]) -> None:
    """Draws labels at the ends of the lines, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = 0.07 * (high - low)
    ends = sorted((float(line.mean[-1]), line.style.label, line.style.color) for line in lines)
    heights = [value for value, _, _ in ends]
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    heights[-1] = min(heights[-1], high)
    for i in reversed(range(len(heights) - 1)):
        heights[i] = min(heights[i], heights[i + 1] - gap)
    offset = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "weight": "bold"}
    for height, (_, label, color) in zip(heights, ends, strict=True):
        axes.annotate(
            plain(label), (1, height), xycoords=("axes fraction", "data"), color=color, **offset
        )


STYLE = {
    "font.family": "DejaVu Sans",  # included in matplotlib, so that all machines draw the same
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 10,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "splagger",
}
