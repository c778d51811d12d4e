"""Methods side by side on anybody's task, with the statistics of the paper's rerun."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from splagger.figures.contestants import Contestant, contestants
from splagger.figures.evidence import COVERED, Evidence
from splagger.figures.stats import (
    at_the_end,
    estimate,
    improvement,
    interquartile_mean,
    over_training,
)
from splagger.recorded import RunError

if TYPE_CHECKING:
    import pandas

USUAL_REFERENCE = "splagger"


def compare(*roots: str | Path, reference: str | None = None) -> "pandas.DataFrame":
    """One line for each method (and other settings) of the run folders below `roots`, the best first.

    `training` and `end` are interquartile means of the return over all of training and over its last tenth, with
    95% bootstrap intervals, at the best rate, on seeds that the rate was not chosen on where there are some
    (`source`). `settings` are those that not all have. `chance` is the probability that a seed of it earns more over training than one of `reference`;
    it is empty where the runs differ in length or in their task.
    """
    import pandas

    runs = Evidence.read(*roots).runs
    if not runs:
        raise RunError(f"no run folder in {', '.join(map(str, roots)) or 'nothing'}")
    merit = lambda c: float(interquartile_mean(_scores(c)))  # noqa: E731
    found = sorted(contestants(runs), key=lambda c: (c.env, c.task, -merit(c)))
    methods = {c.method for c in found}
    if reference is not None and reference not in methods:
        raise RunError(f"no run of {reference!r}; there are {', '.join(sorted(methods))}")
    rows = []
    for one in found:
        neighbors = [c for c in found if c.env == one.env]
        rivals = [c for c in neighbors if c.task == one.task]
        rows.append(_row(one, neighbors, _reference(one, rivals, reference)))
    return pandas.DataFrame(rows)


def _scores(one: Contestant) -> np.ndarray:
    return over_training(one.chosen.curves)


def _reference(one: Contestant, rivals: list[Contestant], name: str | None) -> Contestant:
    """The one of that name; SplAgger, or the best, if nobody was named."""
    named = [c for c in rivals if c.method == (name or USUAL_REFERENCE)]
    if named or name is None:
        return (named or rivals)[0]
    return one


def _row(one: Contestant, neighbors: list[Contestant], reference: Contestant) -> dict[str, Any]:
    training = estimate(interquartile_mean, _scores(one))
    end = estimate(interquartile_mean, at_the_end(one.chosen.curves))
    return {
        "env": one.env,
        "method": one.method,
        "settings": ", ".join(one.apart(neighbors)),
        "frames": int(one.chosen.frames[-1]),
        "rate": one.chosen.rate,
        "seeds": len(one.chosen.curves),
        "source": one.chosen.source,
        "training": training.value,
        "training_low": training.low,
        "training_high": training.high,
        "end": end.value,
        "end_low": end.low,
        "end_high": end.high,
        "reference": reference.method,
        "chance": _chance(one, reference),
    }


def _chance(one: Contestant, other: Contestant) -> float | None:
    lengths = sorted(float(c.chosen.frames[-1]) for c in (one, other))
    if one is other or lengths[0] < COVERED * lengths[1]:
        return None
    scores = [
        over_training(c.chosen.curves[:, c.chosen.frames <= lengths[0]]) for c in (one, other)
    ]
    return float(improvement(*scores))


HEAD = ("method", "settings", "frames", "rate", "seeds", "IQM over training", "IQM at the end")


def text(found: "pandas.DataFrame") -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """(title, head, rows) for each environment, to be printed."""
    for env, part in found.groupby("env", sort=False):
        names = part["reference"].unique()
        lines: Any = part.itertuples()
        rows = [
            (
                row.method,
                row.settings,
                f"{row.frames:,}",
                f"{row.rate:g}",
                f"{row.seeds} ({row.source})",
                f"{row.training:.2f} [{row.training_low:.2f}, {row.training_high:.2f}]",
                f"{row.end:.2f} [{row.end_low:.2f}, {row.end_high:.2f}]",
                "" if row.chance is None or np.isnan(row.chance) else f"{row.chance:.2f}",
            )
            for row in lines
        ]
        yield str(env), (*HEAD, f"P(more than {' or '.join(names)})"), rows
