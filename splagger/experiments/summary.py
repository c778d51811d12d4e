"""Runs in one line each, or in one picture."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from splagger.figures.draw import PLAIN, picture
from splagger.figures.evidence import Chosen
from splagger.figures.members import Members, Settings, best_rate, members_of
from splagger.figures.panels import CurvePanel, Figure, Line, learning_curve
from splagger.figures.styles import SPARE, style_of
from splagger.recorded import RecordedRun, RunError
from splagger.registry import ENVS


def summarize(folder: RecordedRun) -> tuple[str, ...]:
    """(environment, method, best rate, mean return of training, final return, speed, folder)."""
    record, parts = folder.read(), members_of(folder)
    arguments = record["arguments"]
    members = max(parts.values(), key=lambda m: m.curves(best_rate(m)).mean())
    rate = best_rate(members)
    curves = members.curves(rate)
    return (
        arguments["env"],
        arguments["method"],
        f"{rate:g}",
        f"{curves.mean():.2f}",
        f"{curves[:, -1].mean():.2f} ({len(curves)} seeds)",
        f"{record.get('frames_per_second') or 0:,.0f}",
        str(folder.path),
    )


def plot(folders: Sequence[RecordedRun], path: str | Path) -> None:
    """Draws each folder's curve at its best rate; all must be of one environment."""
    names = {folder.read()["arguments"]["env"] for folder in folders}
    if len(names) > 1:
        raise RunError(f"one picture shows one environment, these are {', '.join(sorted(names))}")
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in PLAIN:
        raise RunError(f"{path}: pictures are written as {', '.join(PLAIN)}")
    name, parts = names.pop(), [(f, members_of(f)) for f in folders]
    last = max((m.frames[-1] for _, p in parts for m in p.values()), default=None)
    if last is None:
        raise RunError("none of these runs has got to its first evaluation yet")
    unit, word = (1e6, "millions") if last >= 1e6 else (1e3, "thousands")
    lines = _distinct([line for part in parts for line in _lines(*part, unit)])
    best = ENVS[name].best_return if name in ENVS else None
    panel = CurvePanel(name, name, (), best, f"frames ({word})")
    Path(path).write_bytes(picture(Figure(name, name, "", (panel,)), [(panel, lines)], kind))


def _lines(folder: RecordedRun, parts: dict[Settings, Members], unit: float) -> list[Line]:
    """A line for each of the folder's settings, named by what tells them apart."""
    method = folder.read()["arguments"]["method"]
    swept = [k for k in Settings._fields if len({getattr(s, k) for s in parts}) > 1]
    lines = []
    for settings, members in parts.items():
        words = [f"{k.replace('_', ' ')} {getattr(settings, k):g}" for k in swept]
        style = style_of(method)._replace(label=", ".join([method, *words]))
        chosen = Chosen(*_best(members), folder.path.name)
        lines.append(learning_curve(style, method, chosen, unit))
    return lines


def _best(members: Members) -> tuple[float, np.ndarray, np.ndarray]:
    rate = best_rate(members)
    return rate, members.frames, members.curves(rate)


def _distinct(lines: list[Line]) -> list[Line]:
    """Lines of one method get colors of their own, and lines of one name the name of their folder too."""
    labels = [line.style.label for line in lines]
    if len({line.style.color for line in lines}) == len(lines):
        return lines
    styles = []
    for i, (label, line) in enumerate(zip(labels, lines, strict=True)):
        name = f"{label} ({line.source})" if labels.count(label) > 1 else label
        styles.append(line.style._replace(color=SPARE[i % len(SPARE)], label=name))
    return [line._replace(style=style) for line, style in zip(lines, styles, strict=True)]
