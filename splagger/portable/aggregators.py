"""The aggregators of `splagger.aggregators` in NumPy, each built from its description in an agent file."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from splagger.portable.arrays import Arrays, Vector, built

LEAST = np.finfo(np.float32).min
LOWEST_TEMPERATURE = np.float32(1e-3)


class Aggregator(NamedTuple):
    """The four functions of a commutative monoid."""

    empty: Callable[[Vector], Any]
    lift: Callable[[Vector], Any]
    combine: Callable[[Any, Any], Any]
    read: Callable[[Any], Vector]


def _added(a, b):
    return a[0] + b[0], a[1] + b[1]


def _peaked(a, b):
    """Adds two triples (peak logit, Σ v·exp(logit - peak), Σ exp(logit - peak))."""
    peak = np.maximum(a[0], b[0])
    left, right = np.exp(a[0] - peak), np.exp(b[0] - peak)
    return peak, left * a[1] + right * b[1], left * a[2] + right * b[2]


def _maximum(about, arrays):
    floor = np.float32(about["floor"])
    read = lambda m: np.maximum(m, floor)  # noqa: E731
    return Aggregator(lambda e: np.full_like(e, LEAST), lambda e: e, np.maximum, read)


def _sum(about, arrays):
    return Aggregator(np.zeros_like, lambda e: e, np.add, lambda m: m)


def _mean(about, arrays):
    one = np.float32(1)
    empty, lift = lambda e: (np.zeros_like(e), np.float32(0)), lambda e: (e, one)
    return Aggregator(empty, lift, _added, lambda m: m[0] / max(m[1], one))


def _softmax(about, arrays, split=lambda e: (e, e)):
    temperature = arrays.get("temperature")

    def lift(e):
        values, logits = split(e)
        return logits / np.maximum(temperature, LOWEST_TEMPERATURE), values, np.ones_like(values)

    def empty(e):
        zeros = np.zeros_like(split(e)[0])
        return np.full_like(zeros, LEAST), zeros, zeros

    return Aggregator(empty, lift, _peaked, lambda m: m[1] / np.where(m[2] == 0, 1, m[2]))


def _weighted_softmax(about, arrays):
    return _softmax(about, arrays, lambda e: np.split(e, 2))


def _weighted_mean(about, arrays):
    def lift(e):
        values, weights = np.split(e, 2)
        weights = np.logaddexp(np.float32(0), weights)
        return values * weights, weights

    def empty(e):
        return np.zeros(len(e) // 2, np.float32), np.zeros(len(e) // 2, np.float32)

    return Aggregator(empty, lift, _added, lambda m: m[0] / np.maximum(m[1], np.float32(0.1)))


def _gaussian_product(about, arrays):
    mean = _weighted_mean(about, arrays)

    def read(aggregate):
        precision = np.maximum(aggregate[1], np.float32(0.1))
        return np.concatenate([aggregate[0] / precision, -np.log(precision)])

    return mean._replace(read=read)


def _halves(about, arrays):
    parts = [aggregator(about[name], arrays.below(name)) for name in ("first", "second")]

    def split(e):
        return zip(parts, (e[: len(e) // 2], e[len(e) // 2 :]), strict=True)

    return Aggregator(
        lambda e: [part.empty(half) for part, half in split(e)],
        lambda e: [part.lift(half) for part, half in split(e)],
        lambda a, b: [part.combine(*pair) for part, *pair in zip(parts, a, b, strict=True)],
        lambda m: np.concatenate([part.read(half) for part, half in zip(parts, m, strict=True)]),
    )


AGGREGATORS = {
    "Max": _maximum,
    "Sum": _sum,
    "Mean": _mean,
    "Softmax": _softmax,
    "WeightedSoftmax": _weighted_softmax,
    "WeightedMean": _weighted_mean,
    "GaussianProduct": _gaussian_product,
    "Halves": _halves,
    "StraightThrough": lambda about, arrays: aggregator(about["inner"], arrays.below("inner")),
}


def aggregator(about: Mapping[str, Any], arrays: Arrays) -> Aggregator:
    return built(AGGREGATORS, about, "aggregator")(about, arrays)
