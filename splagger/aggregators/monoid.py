"""The paper's ⊕. An aggregator is a commutative monoid: a memory takes O(1) space, and a sequence is a scan.

    g(e₁ … eₜ) = read(lift(e₁) ⊕ … ⊕ lift(eₜ))

An aggregator defines `empty`, `lift`, `combine` and `read` for one encoding (a vector). `absorb` (one step) and
`prefixes` (a whole sequence, with resets anywhere) follow from these.
"""

import functools as ft
from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from splagger.nn.scan import over_axes, prefix_scan

Aggregate = Any  # a pytree of arrays, specific to the aggregator


class AbstractAggregator(eqx.Module):
    """A commutative monoid: `combine` must be associative and commutative, and `empty` its unit.

    A float field (a temperature) becomes a trained array when a model is built. Declare all other fields with
    `eqx.field(static=True)`.
    """

    @abstractmethod
    def empty(self, e: Float[Array, " D"]) -> Aggregate:
        """Returns the aggregate of no encodings; `e` provides shape and dtype."""

    @abstractmethod
    def lift(self, e: Float[Array, " D"]) -> Aggregate:
        """Returns the aggregate of one encoding."""

    @abstractmethod
    def combine(self, a: Aggregate, b: Aggregate) -> Aggregate:
        """Returns the aggregate of all encodings in `a` and `b`."""

    @abstractmethod
    def read(self, aggregate: Aggregate) -> Float[Array, " R"]:
        """Returns the vector that the rest of the network takes."""


def absorb(
    aggregator: AbstractAggregator,
    aggregate: Aggregate,
    e: Float[Array, " D"],
    reset: Bool[Array, ""] | bool = False,
) -> Aggregate:
    """Returns the aggregate after one more encoding; `reset` empties it first. Takes O(1) time.

    >>> from splagger.aggregators import Mean
    >>> mean = Mean()
    >>> aggregate = mean.empty(jnp.zeros(2))
    >>> for e in (jnp.array([1.0, 2.0]), jnp.array([3.0, 6.0])):
    ...     aggregate = absorb(mean, aggregate, e)
    >>> mean.read(aggregate).tolist()
    [2.0, 4.0]
    """
    aggregate = jax.tree.map(ft.partial(jnp.where, reset), aggregator.empty(e), aggregate)
    return aggregator.combine(aggregate, aggregator.lift(e))


def prefixes(
    aggregator: AbstractAggregator,
    aggregate: Aggregate,
    es: Float[Array, "T *batch D"],
    resets: Bool[Array, "T *batch"],
) -> Aggregate:
    """Returns all T running aggregates of a sequence, or of a batch, by one associative scan of depth O(√T).

    >>> from splagger.aggregators import Max
    >>> es, resets = jnp.array([[1.0], [3.0], [2.0]]), jnp.array([False, False, True])
    >>> prefixes(Max(), Max().empty(es[0]), es, resets).ravel().tolist()
    [1.0, 3.0, 2.0]
    """

    def join(a, b):
        (left, left_reset), (right, right_reset) = a, b
        joined = over_axes(aggregator.combine, resets.ndim)(left, right)

        def restart(right, joined):
            flag = jnp.expand_dims(right_reset, range(resets.ndim, right.ndim))
            return jnp.where(flag, right, joined)

        return jax.tree.map(restart, right, joined), left_reset | right_reset

    lifted = over_axes(aggregator.lift, resets.ndim)(es)
    elements = jax.tree.map(lambda m, x: jnp.concatenate([m[None], x]), aggregate, lifted)
    # Element 0 is the aggregate so far.
    flags = jnp.concatenate([jnp.zeros_like(resets[:1]), resets])
    aggregates, _ = prefix_scan(join, (elements, flags))
    return jax.tree.map(lambda m: m[1:], aggregates)


def read_size(aggregator: AbstractAggregator, width: int) -> int:
    """Returns the size of a `read` for encodings of `width` numbers."""
    e = jax.ShapeDtypeStruct((width,), jnp.float32)
    return jax.eval_shape(lambda e: aggregator.read(aggregator.lift(e)), e).shape[0]
