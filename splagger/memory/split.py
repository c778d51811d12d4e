"""Split aggregation: a permutation-invariant aggregator for some neurons, a bypass for the others."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from splagger.aggregators import AbstractAggregator, Max, absorb, prefixes, read_size
from splagger.nn.gpu import cuda, split_max
from splagger.nn.scan import over_axes


class SplitAggregation(eqx.Module):
    """concat(e[:skip], g(e₁[skip:], …, eₜ[skip:])): the first `skip` neurons bypass the aggregator g.

    With skip = 0, all neurons are aggregated; with skip = width, none.
    """

    aggregator: AbstractAggregator
    width: int = eqx.field(static=True)
    skip: int = eqx.field(static=True)

    @property
    def output_size(self) -> int:
        return self.skip + read_size(self.aggregator, self.width - self.skip)

    def start(self):
        """Returns the aggregate of no encodings."""
        return self.aggregator.empty(jnp.zeros(self.width - self.skip))

    def step(self, aggregate, e: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        """Returns (aggregate, output) after one more encoding."""
        aggregate = absorb(self.aggregator, aggregate, e[self.skip :], reset)
        return aggregate, jnp.concatenate([e[: self.skip], self.aggregator.read(aggregate)])

    def unroll(self, aggregate, es: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]):
        """Returns (last aggregate, all T outputs)."""
        aggregator = self.aggregator
        fused = self.skip < self.width and cuda.enabled() and split_max.available()
        if fused and isinstance(aggregator, Max) and type(aggregator) is Max:  # not a subclass
            return split_max.unroll(self.skip, aggregator.floor, aggregate, es, resets)
        aggregates = prefixes(self.aggregator, aggregate, es[..., self.skip :], resets)
        read = over_axes(self.aggregator.read, resets.ndim)(aggregates)
        last = jax.tree.map(lambda m: m[-1], aggregates)
        return last, jnp.concatenate([es[..., : self.skip], read], axis=-1)
