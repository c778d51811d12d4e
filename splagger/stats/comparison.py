"""`compare`: methods on any task, with the same statistics as the reproduction of the paper."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from splagger.errors import RunError
from splagger.stats.estimates import (
    at_the_end,
    estimate,
    improvement,
    interquartile_mean,
    over_training,
)
from splagger.stats.evidence import COVERED, Evidence
from splagger.stats.variants import Variant, variants

if TYPE_CHECKING:
    import pandas

DEFAULT_REFERENCE = "splagger"


def compare(*roots: str | Path, reference: str | None = None) -> "pandas.DataFrame":
    """Returns one row per method and settings of the run folders below `roots`, the best first.

    - `training`, `end`: the interquartile mean, at the best rate, of the return over all of training and over its last
      tenth, with 95% bootstrap intervals (`_low`, `_high`).
    - `seeds`, `source`: the number of seeds, and whether the rate was chosen on them.
    - `settings`: the settings that not all methods share.
    - `probability`: the probability that a seed of this method earns more over training than a seed of `reference`.
      It is empty if the runs differ in length or in their task.

    Raises a RunError if there are no runs, or none of `reference`.
    """
    import pandas

    runs = Evidence.read(*roots).runs
    if not runs:
        raise RunError(f"no run folder in {', '.join(map(str, roots)) or 'the given paths'}")
    merit = lambda v: float(interquartile_mean(_scores(v)))  # noqa: E731
    found = sorted(variants(runs), key=lambda v: (v.env, v.task, -merit(v)))
    methods = {v.method for v in found}
    if reference is not None and reference not in methods:
        raise RunError(f"no run of {reference!r}; there are {', '.join(sorted(methods))}")
    rows = []
    for one in found:
        neighbors = [v for v in found if v.env == one.env]
        rivals = [v for v in neighbors if v.task == one.task]
        rows.append(_row(one, neighbors, _reference(one, rivals, reference)))
    return pandas.DataFrame(rows)


def _scores(one: Variant) -> np.ndarray:
    return over_training(one.chosen.curves)


def _reference(one: Variant, rivals: list[Variant], name: str | None) -> Variant:
    """Returns the variant called `name`; without a name, SplAgger or else the best."""
    named = [v for v in rivals if v.method == (name or DEFAULT_REFERENCE)]
    if named or name is None:
        return (named or rivals)[0]
    return one


def _row(one: Variant, neighbors: list[Variant], reference: Variant) -> dict[str, Any]:
    training = estimate(interquartile_mean, _scores(one))
    end = estimate(interquartile_mean, at_the_end(one.chosen.curves))
    return {
        "env": one.env,
        "method": one.method,
        "settings": ", ".join(one.distinguishing(neighbors)),
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
        "probability": _probability(one, reference),
    }


def _probability(one: Variant, other: Variant) -> float | None:
    lengths = sorted(float(v.chosen.frames[-1]) for v in (one, other))
    if one is other or lengths[0] < COVERED * lengths[1]:
        return None
    scores = [
        over_training(v.chosen.curves[:, v.chosen.frames <= lengths[0]]) for v in (one, other)
    ]
    return float(improvement(*scores))
