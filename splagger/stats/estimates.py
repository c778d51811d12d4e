"""Estimates with bootstrap intervals. Resampling uses a fixed seed: the same input gives the same output."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SEED = 0
Reduced = np.ndarray | np.floating  # an array without its last axis
# With these, the ends of an interval are off by about 1% of its width. With 2,000, one claim of 61 had another verdict for
# most other seeds of the bootstrap.
DRAWS = 20_000
LAST = 0.1  # the fraction of training that is its end; curves are smoothed over the same fraction


class Estimate(NamedTuple):
    """A value with its confidence interval."""

    value: float
    low: float
    high: float


def estimate(
    statistic: Callable[..., Reduced],
    *strata: np.ndarray,
    level: float = 0.95,
    draws: int = DRAWS,
) -> Estimate:
    """Computes statistic(*strata) with its percentile bootstrap interval; each stratum is resampled separately.

    The statistic reduces the last axis of every stratum; leading axes are resamplings. A single sample has no
    interval: `low` and `high` are NaN.

    >>> estimate(interquartile_mean, np.array([3.0, 3.0, 3.0]))
    Estimate(value=3.0, low=3.0, high=3.0)
    """
    if min(map(len, strata)) < 2:
        return Estimate(float(statistic(*strata)), math.nan, math.nan)
    random = np.random.default_rng(SEED)
    resampled = [s[random.integers(len(s), size=(draws, len(s)))] for s in strata]
    low, high = np.quantile(statistic(*resampled), [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(statistic(*strata)), float(low), float(high))


def interval(found: Estimate, form: str = ".2f") -> str:
    """Returns "value [low, high]", or the value alone if it has no interval."""
    if math.isnan(found.low):
        return f"{found.value:{form}}"
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def bootstrap_interval(
    curves: np.ndarray, level: float = 0.68, draws: int = 1000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Computes (low, mean, high), each [T], of curves [S, T]; seeds are resampled with replacement, as in the paper.

    >>> low, mean, high = bootstrap_interval(np.array([[1.0, 2.0], [3.0, 2.0]]))
    >>> mean.tolist(), float(high[1] - low[1])
    ([2.0, 2.0], 0.0)
    """
    picks = np.random.default_rng(SEED).integers(len(curves), size=(draws, len(curves)))
    edges = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(curves[picks].mean(axis=1), edges, axis=0)
    return low, curves.mean(axis=0), high


def interquartile_mean(values: np.ndarray) -> Reduced:
    """Computes the mean over the last axis, of length S, without its lowest and highest ⌊S/4⌋ values.

    >>> float(interquartile_mean(np.array([0.0, 2.0, 4.0, 99.0])))
    3.0
    """
    cut = values.shape[-1] // 4
    return np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(axis=-1)


def interquartile_mean_of_strata(*strata: np.ndarray) -> Reduced:
    """Computes the mean of the middle half of all values, where each stratum has the same weight, whatever its length.

    Values are sorted by size; a value that lies partly in the lowest or highest quarter of the weight counts in part.

    >>> one, many = np.array([0.0, 1.0]), np.array([4.0, 4.0, 4.0, 4.0])
    >>> float(interquartile_mean_of_strata(one, many))  # the middle half: 1 and two of the fours
    2.5
    """
    if len(strata) == 1:  # whole values, as in tables of one task
        return interquartile_mean(strata[0])
    values = np.concatenate(strata, axis=-1)
    weights = np.concatenate([np.full(s.shape[-1], 1 / s.shape[-1] / len(strata)) for s in strata])
    order = np.argsort(values, axis=-1)
    above = np.cumsum(weights[order], axis=-1)  # the share of the values up to this one
    share = np.minimum(above, 0.75) - np.maximum(above - weights[order], 0.25)
    share = np.maximum(share, 0.0)
    kept = share * np.take_along_axis(values, order, axis=-1)
    return kept.sum(axis=-1) / share.sum(axis=-1)


def improvement(better: np.ndarray, worse: np.ndarray) -> Reduced:
    """Computes P(X > Y) + P(X = Y)/2 for X drawn from `better` [..., S] and Y from `worse` [..., R].

    >>> float(improvement(np.array([1.0, 2.0]), np.array([0.0, 2.0])))
    0.625
    """
    size = worse.shape[-1]
    rows, columns = better.reshape(-1, better.shape[-1]), np.sort(worse, axis=-1).reshape(-1, size)
    pairs = zip(rows, columns, strict=True)
    # Twice the number of pairs that X wins: twice the Y below X, and once those equal to it.
    wins = [(y.searchsorted(x, "left") + y.searchsorted(x, "right")).sum() for x, y in pairs]
    found = np.reshape(wins, better.shape[:-1]) / (2 * size * better.shape[-1])
    return found if found.ndim else found[()]


def difference(better: np.ndarray, worse: np.ndarray) -> Reduced:
    """Computes mean(X) - mean(Y) over the last axes."""
    return better.mean(axis=-1) - worse.mean(axis=-1)


def over_training(curves: np.ndarray) -> np.ndarray:
    """Computes the mean [S] of curves [S, T] over all evaluations, by which the paper chooses rates."""
    return curves.mean(axis=1)


def at_the_end(curves: np.ndarray) -> np.ndarray:
    """Computes the mean [S] of curves [S, T] over the last tenth of the evaluations."""
    return curves[:, -window(curves.shape[1]) :].mean(axis=1)


def window(evaluations: int) -> int:
    """Returns how many evaluations are a tenth of training, at least one.

    >>> window(100), window(6)
    (10, 1)
    """
    return max(1, int(LAST * evaluations))


def smooth(curve: np.ndarray, size: int | None = None) -> np.ndarray:
    """Returns the trailing mean over a tenth of the points, or over `size` points, padded with the first value.

    It ends with the mean over the last tenth of training, as `at_the_end` does. Curves with fewer than 20 points
    are not smoothed.

    >>> smooth(np.array([0.0, 2.0, 4.0])).tolist()
    [0.0, 2.0, 4.0]
    """
    size = window(len(curve)) if size is None else size
    padded = np.concatenate([np.full(size - 1, curve[0]), curve])
    return np.convolve(padded, np.full(size, 1 / size), mode="valid")


def thin(length: int, most: int = 200) -> np.ndarray:
    """Returns the indices of at most `most` evenly spaced points, including the first and the last.

    >>> thin(5, most=3).tolist(), thin(2).tolist()
    ([0, 2, 4], [0, 1])
    """
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(int))
