"""Aggregators that treat all neurons alike: maximum, sum, mean."""

import equinox as eqx
import jax.numpy as jnp

from splagger.aggregators.monoid import AbstractAggregator


def _larger(a, b):
    """Returns max(a, b). At a tie, all of the gradient goes to `a`.

    The earliest of equal encodings then gets all of the gradient, in any order of evaluation.
    """
    return jnp.where(a >= b, a, b)


class Max(AbstractAggregator):
    """The pointwise maximum with a floor, max(floor, e₁, …, eₜ): the paper's choice.

    An empty memory reads as the floor. The floor is applied in `read`, so that the least float remains the
    unit of `combine`.

    >>> Max().read(Max().combine(jnp.array([1.0, -2.0]), jnp.array([0.5, -1.0]))).tolist()
    [1.0, 0.0]
    """

    floor: float = eqx.field(static=True, default=0.0)

    def empty(self, e):
        return jnp.full_like(e, jnp.finfo(e.dtype).min)

    def lift(self, e):
        return e

    def combine(self, a, b):
        return _larger(a, b)

    def read(self, aggregate):
        return jnp.maximum(aggregate, self.floor)


class Sum(AbstractAggregator):
    """The sum Σ eᵢ.

    >>> Sum().read(Sum().combine(jnp.array([1.0]), jnp.array([2.0]))).tolist()
    [3.0]
    """

    def empty(self, e):
        return jnp.zeros_like(e)

    def lift(self, e):
        return e

    def combine(self, a, b):
        return a + b

    def read(self, aggregate):
        return aggregate


class Mean(AbstractAggregator):
    """The mean Σ eᵢ / t, or 0 for an empty memory. An aggregate holds the sum and the count.

    >>> mean = Mean()
    >>> mean.read(mean.combine(mean.lift(jnp.array([1.0])), mean.lift(jnp.array([2.0])))).tolist()
    [1.5]
    """

    def empty(self, e):
        return jnp.zeros_like(e), jnp.zeros((), e.dtype)

    def lift(self, e):
        return e, jnp.ones((), e.dtype)

    def combine(self, a, b):
        return a[0] + b[0], a[1] + b[1]

    def read(self, aggregate):
        total, count = aggregate
        return total / jnp.maximum(count, 1.0)
