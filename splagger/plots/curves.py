"""Learning curves of any runs: one panel per environment, one line per method and settings."""

from collections.abc import Sequence

from splagger.paper_numbers import ReferenceLine
from splagger.plots.panels import CurvePanel, Line, learning_curve
from splagger.plots.styles import SPARE, STYLES, style_of
from splagger.stats.selection import for_figures
from splagger.stats.variants import Variant


def curves_of(
    compared: Sequence[Variant], references: tuple[ReferenceLine, ...] = ()
) -> tuple[CurvePanel, list[Line]]:
    """Returns the panel and lines of variants on one environment, each at its best rate; see also `with_distinct_colors`."""
    name, last = compared[0].env, max(one.members.frames[-1] for one in compared)
    unit, word = (1e6, "millions") if last >= 1e6 else (1e3, "thousands")
    labels = _labels([", ".join([one.method, *one.distinguishing(compared)]) for one in compared])
    pairs = zip(compared, labels, strict=True)
    lines = [_line(one, label, float(last), unit) for one, label in pairs]
    lines.sort(key=lambda line: -line.mean.mean())
    panel = CurvePanel(name, name, (), references, f"frames ({word})")
    return panel, lines


def _line(one: Variant, label: str, longest: float, unit: float) -> Line:
    style = style_of(one.method)._replace(label=label)
    return learning_curve(style, one.method, one.chosen(for_figures), longest, unit)


def _labels(names: list[str], most: int = 44) -> list[str]:
    """Shortens long names to their beginning and end if they stay distinct; labels have little room."""
    half = most // 2
    short = [n if len(n) <= most else f"{n[:half]}…{n[-half + 1 :]}" for n in names]
    return short if len(set(short)) == len(set(names)) else names


def with_distinct_colors(
    drawn: Sequence[tuple[CurvePanel, list[Line]]],
) -> list[tuple[CurvePanel, list[Line]]]:
    """Gives each label one color in all panels, and another one than other labels, see `distinct`."""
    firsts: dict[str, Line] = {}
    for line in (line for _, lines in drawn for line in lines):
        firsts.setdefault(line.style.label, line)
    styles = {line.style.label: line.style for line in distinct(list(firsts.values()))}
    recolored = lambda line: line._replace(style=styles[line.style.label])  # noqa: E731
    return [(panel, list(map(recolored, lines))) for panel, lines in drawn]


def distinct(lines: list[Line]) -> list[Line]:
    """Gives lines whose color is already taken a spare color while there are any; methods of the paper come first."""
    own = {line.style.color for line in lines}
    spare = [color for color in SPARE if color not in own]
    taken, colors = set(), {}
    for index in sorted(range(len(lines)), key=lambda i: lines[i].method not in STYLES):
        color = lines[index].style.color
        if color in taken and spare:
            color = spare.pop(0)
        taken.add(color)
        colors[index] = color
    return [
        line._replace(style=line.style._replace(color=colors[i])) for i, line in enumerate(lines)
    ]
