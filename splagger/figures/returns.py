"""Returns of every method on every environment: the paper's statistics, and honest ones beside them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from splagger.figures.evidence import Chosen, Evidence, Series
from splagger.figures.scales import SCALES
from splagger.figures.stats import (
    Estimate,
    at_the_end,
    estimate,
    improvement,
    interquartile_mean,
    over_training,
)

REFERENCE = "splagger"


class Returns(NamedTuple):
    """One method on one environment. `paper` is reported on the seeds its rate was chosen on."""

    series: Series
    paper: Chosen
    honest: Chosen
    training: Estimate  # interquartile mean of the returns over training, on the honest seeds
    end: Estimate
    chance: float | None  # that a seed of SplAgger earns more over training than one of this method


def names(evidence: Evidence) -> list[Series]:
    """Every environment and method that was run with its own settings, SplAgger first."""
    found = dict.fromkeys(Series(*run.name) for run in evidence.runs)
    known = [series for series in found if evidence.members(series) is not None]
    return sorted(known, key=lambda s: (s.env, s.method != REFERENCE, s.method))


def returns(evidence: Evidence) -> list[Returns]:
    """A row for each of `names`."""
    return [_row(evidence, series) for series in names(evidence)]


def _row(evidence: Evidence, series: Series) -> Returns:
    paper, honest = evidence.paper(series), evidence.honest(series)
    reference = evidence.honest(series._replace(method=REFERENCE))
    assert paper is not None and honest is not None  # `names` lists those that have runs
    mine, chance = over_training(honest.curves), None
    if reference is not None and series.method != REFERENCE:
        chance = float(improvement(over_training(reference.curves), mine))
    end = estimate(interquartile_mean, at_the_end(honest.curves))
    return Returns(series, paper, honest, estimate(interquartile_mean, mine), end, chance)


def across(evidence: Evidence, methods: Sequence[str]) -> tuple[list[str], dict[str, Estimate]]:
    """(environments, method → interquartile mean of the normalized returns over training of all their seeds).

    Environments are those with a scale on which all `methods` were run; seeds are resampled within each.
    """
    have = {(s.env, s.method) for s in names(evidence)}
    envs = [env for env in SCALES if all((env, method) in have for method in methods)]
    if not envs:
        return [], {}
    pooled = lambda *strata: interquartile_mean(np.concatenate(strata, axis=-1))  # noqa: E731
    found = {}
    for method in methods:
        chosen = [(SCALES[env], evidence.honest(Series(env, method))) for env in envs]
        scores = [(over_training(c.curves) - s.guess) / (s.best - s.guess) for s, c in chosen if c]
        found[method] = estimate(pooled, *scores)
    return envs, found
