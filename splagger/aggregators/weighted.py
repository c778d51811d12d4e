"""Aggregators that weigh encodings."""

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from splagger.aggregators.monoid import AbstractAggregator
from splagger.errors import SettingError

LOWEST_TEMPERATURE = 1e-3


def _empty_weighted(values, logits):
    least = jnp.full_like(logits, jnp.finfo(logits.dtype).min)
    return least, jnp.zeros_like(values), jnp.zeros_like(values)


def _combine_weighted(a, b):
    """Adds two triples (peak logit, Σ v·exp(logit - peak), Σ exp(logit - peak)), stably for any logit.

    The peak only keeps exp in range and cancels in the quotient, so that it needs no gradient: the derivative
    flows through `a[0]` and `b[0]`.
    """
    peak = jax.lax.stop_gradient(jnp.maximum(a[0], b[0]))
    left, right = jnp.exp(a[0] - peak), jnp.exp(b[0] - peak)
    return peak, left * a[1] + right * b[1], left * a[2] + right * b[2]


def _read_weighted(aggregate):
    _, numerator, denominator = aggregate
    return numerator / jnp.where(denominator == 0, 1.0, denominator)


def at_least(temperature):
    """Returns the temperature, or the lowest one. A negative temperature would turn the maximum into a minimum."""
    return jnp.maximum(temperature, LOWEST_TEMPERATURE)


class Softmax(AbstractAggregator):
    """The mean of e weighted by softmax(e / temperature) over time: between mean and maximum.

    The temperature is learned. Below 0.001, it has the effect of 0.001.

    >>> softmax = Softmax(temperature=0.01)
    >>> pair = softmax.combine(softmax.lift(jnp.array([1.0])), softmax.lift(jnp.array([2.0])))
    >>> softmax.read(pair).tolist()
    [2.0]
    """

    temperature: float | jax.Array = 0.1

    def empty(self, e):
        return _empty_weighted(e, e)

    def lift(self, e):
        return e / at_least(self.temperature), e, jnp.ones_like(e)

    def combine(self, a, b):
        return _combine_weighted(a, b)

    def read(self, aggregate):
        return _read_weighted(aggregate)


class WeightedSoftmax(AbstractAggregator):
    """Σ v·softmax(u / temperature), where e = [v; u] holds values and logits; reads D/2 numbers.

    The temperature is learned. Below 0.001, it has the effect of 0.001.

    >>> WeightedSoftmax().read(WeightedSoftmax().lift(jnp.array([5.0, 0.3]))).tolist()
    [5.0]
    """

    temperature: float | jax.Array = 0.1

    def empty(self, e):
        return _empty_weighted(*_halves(self, e))

    def lift(self, e):
        values, logits = _halves(self, e)
        return logits / at_least(self.temperature), values, jnp.ones_like(values)

    def combine(self, a, b):
        return _combine_weighted(a, b)

    def read(self, aggregate):
        return _read_weighted(aggregate)


class WeightedMean(AbstractAggregator):
    """Σ v·w / max(Σ w, 0.1) with w = softplus(u), where e = [v; u]; reads D/2 numbers.

    >>> WeightedMean().read(WeightedMean().lift(jnp.array([5.0, 0.3]))).round(3).tolist()
    [5.0]
    """

    def empty(self, e):
        zeros = jnp.zeros_like(_halves(self, e)[0])
        return zeros, zeros

    def lift(self, e):
        values, weights = _halves(self, e)
        weights = jax.nn.softplus(weights)
        return values * weights, weights

    def combine(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def read(self, aggregate):
        total, weight = aggregate
        return total / jnp.maximum(weight, 0.1)


class GaussianProduct(AbstractAggregator):
    """PEARL's product Πᵢ N(μᵢ, 1/ρᵢ) with ρ = softplus(u), where e = [μ; u]; reads (mean, log variance).

    mean = Σ μρ / max(Σ ρ, 0.1) and log variance = -log max(Σ ρ, 0.1): the variance never increases.

    >>> mean, log_variance = GaussianProduct().read(GaussianProduct().empty(jnp.zeros(2))).tolist()
    >>> mean, round(log_variance, 3)
    (0.0, 2.303)
    """

    def empty(self, e):
        zeros = jnp.zeros_like(_halves(self, e)[0])
        return zeros, zeros

    def lift(self, e):
        mean, precision = _halves(self, e)
        precision = jax.nn.softplus(precision)
        return mean * precision, precision

    def combine(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def read(self, aggregate):
        weighted, precision = aggregate
        precision = jnp.maximum(precision, 0.1)
        return jnp.concatenate([weighted / precision, -jnp.log(precision)])


def _halves(aggregator, e):
    if e.shape[0] % 2:
        raise SettingError(
            f"{type(aggregator).__name__} needs an even number of neurons; {e.shape[0]} is odd"
        )
    return jnp.split(e, 2)


def temperatures(aggregator: AbstractAggregator) -> list[Callable[[Any], Any]]:
    """Returns a getter for each temperature of an aggregator and of its parts: a trained field of this name with one number.

    >>> from splagger.aggregators import Halves, Max
    >>> halves = Halves(Max(), Softmax(0.3))
    >>> [get(halves) for get in temperatures(halves)]
    [0.3]
    """
    found = []
    for field in dataclasses.fields(aggregator):
        value, get = getattr(aggregator, field.name), operator.attrgetter(field.name)
        if field.name == "temperature":
            is_number = eqx.is_array_like(value) and jnp.ndim(value) == 0
            found += [get] * (is_number and not field.metadata.get("static", False))
        elif isinstance(value, AbstractAggregator):
            found += [
                lambda whole, get=get, inner=inner: inner(get(whole))
                for inner in temperatures(value)
            ]
    return found
