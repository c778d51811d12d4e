"""Aggregators built from other aggregators."""

import jax
import jax.numpy as jnp

from splagger.aggregators.monoid import AbstractAggregator, read_size


class Halves(AbstractAggregator):
    """Two aggregators: `first` for the first half of the neurons, `second` for the second half.

    >>> from splagger.aggregators import Max, Mean
    >>> halves = Halves(Mean(), Max())
    >>> pair = halves.combine(halves.lift(jnp.array([1.0, 1.0])), halves.lift(jnp.array([2.0, 2.0])))
    >>> halves.read(pair).tolist()
    [1.5, 2.0]
    """

    first: AbstractAggregator
    second: AbstractAggregator

    def empty(self, e):
        first, second = _halves(e)
        return self.first.empty(first), self.second.empty(second)

    def lift(self, e):
        first, second = _halves(e)
        return self.first.lift(first), self.second.lift(second)

    def combine(self, a, b):
        return self.first.combine(a[0], b[0]), self.second.combine(a[1], b[1])

    def read(self, aggregate):
        return jnp.concatenate([self.first.read(aggregate[0]), self.second.read(aggregate[1])])


def _halves(e):
    half = e.shape[0] // 2
    return e[:half], e[half:]


@jax.custom_jvp
def straight_through(value, surrogate):
    """Returns `value`, with the derivative of `surrogate`."""
    return value


straight_through.defjvp(lambda primals, tangents: (primals[0], tangents[1]))


class StraightThrough(AbstractAggregator):
    """An aggregator that reads like `inner` and differentiates like a sum: d read / d eᵢ = I for every i (AMRL).

    If `inner` reads fewer numbers than an encoding has, the sum is over the first numbers, its values. For `Halves`,
    these are the values of each half.

    >>> from splagger.aggregators import Max
    >>> StraightThrough(Max()).read(StraightThrough(Max()).lift(jnp.array([2.0]))).tolist()
    [2.0]
    """

    inner: AbstractAggregator

    def empty(self, e):
        return self.inner.empty(e), jnp.zeros_like(_values(self.inner, e))

    def lift(self, e):
        return self.inner.lift(e), _values(self.inner, e)

    def combine(self, a, b):
        return self.inner.combine(a[0], b[0]), a[1] + b[1]

    def read(self, aggregate):
        return straight_through(self.inner.read(aggregate[0]), aggregate[1])


def _values(aggregator, e):
    """Returns the numbers of `e` that an aggregator reads; the others are weights or logits."""
    if isinstance(aggregator, Halves):
        first, second = _halves(e)
        return jnp.concatenate(
            [_values(aggregator.first, first), _values(aggregator.second, second)]
        )
    return e[: read_size(aggregator, e.shape[0])]
