"""Runs in one line each, or in one picture."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from splagger.experiments.records import RunError, RunFolder
from splagger.figures.draw import curve_of, draw_curves
from splagger.registry import ENVS


def best_rate(rows: list[dict]) -> float:
    """The rate with the highest return, averaged over all evaluations and seeds (the paper's choice).

    Runs that stopped early lack evaluations; only rates that have them all are compared, if there are any.
    """
    by_rate = defaultdict(list)
    for row in rows:
        by_rate[row["rate"]].append(row["return"])
    most = max(len(returns) for returns in by_rate.values())
    return max(by_rate, key=lambda rate: (len(by_rate[rate]) == most, np.mean(by_rate[rate])))


def summarize(folder: RunFolder) -> tuple[str, ...]:
    """(environment, method, best rate, mean return of training, final return, speed, folder)."""
    record, rows = folder.read(), folder.read_curves()
    arguments = record["arguments"]
    rate = best_rate(rows)
    mine = [row for row in rows if row["rate"] == rate]
    final = [row["return"] for row in mine if row["update"] == max(r["update"] for r in mine)]
    return (
        arguments["env"],
        arguments["method"],
        f"{rate:g}",
        f"{np.mean([row['return'] for row in mine]):.2f}",
        f"{np.mean(final):.2f} ({len(final)} seeds)",
        f"{record.get('frames_per_second') or 0:,.0f}",
        str(folder.path),
    )


def plot(folders: Sequence[RunFolder], path: str | Path) -> None:
    """Draws each folder's curve at its best rate; all must be of one environment."""
    names = {folder.read()["arguments"]["env"] for folder in folders}
    if len(names) > 1:
        raise RunError(f"one picture shows one environment, these are {', '.join(sorted(names))}")
    row = ENVS.get(name := names.pop())
    curves = []
    for folder in folders:
        rows = folder.read_curves()
        if rows:
            curves.append(curve_of(folder.read()["arguments"]["method"], rows, best_rate(rows)))
    if not curves:
        raise RunError("none of these runs has got to its first evaluation yet")
    draw_curves(curves, path, name, row.best_return if row else None)
