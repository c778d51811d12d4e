"""Returns of every method on every environment, with the paper's statistics and with unbiased ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from splagger.paper_numbers import SCALES
from splagger.stats.estimates import (
    Estimate,
    at_the_end,
    estimate,
    improvement,
    interquartile_mean,
    interquartile_mean_of_strata,
    over_training,
)
from splagger.stats.evidence import Evidence, Series
from splagger.stats.selection import Chosen

REFERENCE = "splagger"


class Returns(NamedTuple):
    """The results of one method on one environment. `as_in_paper` uses the seeds its rate was chosen on."""

    series: Series
    as_in_paper: Chosen
    unbiased: Chosen
    training: Estimate  # interquartile mean of the returns over training, on the unbiased seeds
    end: Estimate
    probability: float | None  # the probability that a seed of SplAgger earns more over training


def recorded_series(evidence: Evidence) -> list[Series]:
    """Returns every method that was run on an environment with default settings; by environment, SplAgger first."""
    found = dict.fromkeys(Series(*run.name) for run in evidence.runs)
    known = [series for series in found if evidence.members(series) is not None]
    return sorted(known, key=lambda s: (s.env, s.method != REFERENCE, s.method))


def returns(evidence: Evidence) -> list[Returns]:
    """Returns one row for each of `recorded_series`."""
    return [_row(evidence, series) for series in recorded_series(evidence)]


def _row(evidence: Evidence, series: Series) -> Returns:
    as_in_paper, unbiased = evidence.as_in_paper(series), evidence.unbiased(series)
    assert as_in_paper is not None and unbiased is not None  # recorded series have runs
    end = estimate(interquartile_mean, at_the_end(unbiased.curves))
    training = estimate(interquartile_mean, over_training(unbiased.curves))
    return Returns(series, as_in_paper, unbiased, training, end, _probability(evidence, series))


def _probability(evidence: Evidence, series: Series) -> float | None:
    """Returns the probability that a seed of SplAgger earns more, over the frames that both methods have.

    None if their learning rates are annealed over different numbers of frames.
    """
    pair = replace(series, method=REFERENCE), series
    found = [members for one in pair if (members := evidence.members(one))]
    if len(found) < 2 or series.method == REFERENCE or evidence.differ_in_schedule(*pair):
        return None
    until = evidence.shared_frames(*pair)
    chosen = [c for one in pair if (c := evidence.unbiased(one, until))]
    return float(improvement(*(over_training(one.curves) for one in chosen)))


def across(evidence: Evidence, methods: Sequence[str]) -> tuple[list[str], dict[str, Estimate]]:
    """Returns environments, and each method's interquartile mean of normalized returns over training, over all seeds.

    The environments are those with a known scale on which all `methods` were run, and are compared over the frames that
    all of them have. Each has the same weight, however many seeds were trained on it. Seeds are resampled within each.
    """
    have = {series.name for series in recorded_series(evidence)}
    of_env = {env: [Series(env, method) for method in methods] for env in SCALES}
    envs = [
        env
        for env, series in of_env.items()
        if have.issuperset(s.name for s in series) and not evidence.differ_in_schedule(*series)
    ]
    if not envs:
        return [], {}
    found = {}
    until = {env: evidence.shared_frames(*of_env[env]) for env in envs}
    for method in methods:
        chosen = [(SCALES[e], evidence.unbiased(Series(e, method), until[e])) for e in envs]
        scores = [(over_training(c.curves) - s.guess) / (s.best - s.guess) for s, c in chosen if c]
        found[method] = estimate(interquartile_mean_of_strata, *scores)
    return envs, found
