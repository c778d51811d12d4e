"""Learning curves of anybody's runs: one panel for an environment, one line for a method with its settings."""

from collections.abc import Sequence

from splagger.paper_numbers import ReferenceLine
from splagger.plots.panels import CurvePanel, Line, learning_curve
from splagger.plots.styles import SPARE, style_of
from splagger.stats.selection import for_figures
from splagger.stats.variants import Variant


def curves_of(
    rivals: Sequence[Variant], references: tuple[ReferenceLine, ...] = ()
) -> tuple[CurvePanel, list[Line]]:
    """All of `rivals`, who are of one environment, each at its best rate."""
    name, last = rivals[0].env, max(one.members.frames[-1] for one in rivals)
    unit, word = (1e6, "millions") if last >= 1e6 else (1e3, "thousands")
    labels = _labels([", ".join([one.method, *one.distinguishing(rivals)]) for one in rivals])
    lines = [_line(one, label, unit) for one, label in zip(rivals, labels, strict=True)]
    lines.sort(key=lambda line: -line.mean.mean())
    panel = CurvePanel(name, name, (), references, f"frames ({word})")
    return panel, distinct(lines)


def _line(one: Variant, label: str, unit: float) -> Line:
    style = style_of(one.method)._replace(label=label)
    return learning_curve(style, one.method, for_figures(one.members), unit)


def _labels(names: list[str], most: int = 44) -> list[str]:
    """Names stand beside the lines, where there is not much room: of long ones beginning and end, if that tells
    them apart."""
    half = most // 2
    short = [n if len(n) <= most else f"{n[:half]}…{n[-half + 1 :]}" for n in names]
    return short if len(set(short)) == len(set(names)) else names


def distinct(lines: list[Line]) -> list[Line]:
    """A line whose color another has already gets a spare one, as long as there are some."""
    own = {line.style.color for line in lines}
    spare = [color for color in SPARE if color not in own]
    taken, apart = set(), []
    for line in lines:
        color = line.style.color
        if color in taken and spare:
            color = spare.pop(0)
        taken.add(color)
        apart.append(line._replace(style=line.style._replace(color=color)))
    return apart
