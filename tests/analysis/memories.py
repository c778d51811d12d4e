"""Small memories with derivatives in closed form."""

import jax
import jax.numpy as jnp
import jax.random as jr

from splagger import SequenceModel
from splagger.analysis.inputs import Inputs, noise
from splagger.memory import SplitAggregation
from splagger.nn import AbstractEncoder, Identity, Linear

INPUTS, WIDTH, OUTPUTS, STEPS = 3, 6, 4, 7


class LinearEncoder(AbstractEncoder):
    """eₜ = W xₜ + b."""

    linear: Linear

    @property
    def input_size(self):
        return self.linear.weight.shape[1]

    def start(self):
        return ()

    def step(self, state, x, reset):
        return state, self.linear(x)

    def unroll(self, state, xs, resets):
        return state, jax.vmap(self.linear)(xs)


def linear_memory(aggregator):
    """f = P g(W x₀ + b, …): all neurons are aggregated, between two linear maps."""
    encoder_key, output_key = jr.split(jr.key(0))
    encoder = LinearEncoder(Linear.create(encoder_key, INPUTS, WIDTH))
    aggregation = SplitAggregation(aggregator, WIDTH, 0)
    projection = Linear.create(output_key, aggregation.output_size, OUTPUTS)
    return SequenceModel(Identity(), encoder, aggregation, projection)


def small_memory(**settings):
    """Returns a small memory; SplAgger by default."""
    return SequenceModel.create(jr.key(1), INPUTS, width=WIDTH, output_size=OUTPUTS, **settings)


def some_noise(memory, seed=2, steps=STEPS) -> Inputs:
    return noise(jr.key(seed), memory, steps, independent=True)


def given(xs, last=None) -> Inputs:
    """Returns these embedded inputs, of which the first `last` + 1 count."""
    never, last = jnp.zeros(len(xs), bool), len(xs) - 1 if last is None else last
    return Inputs(xs, jnp.int32(last), never, never, jnp.zeros(len(xs)))
