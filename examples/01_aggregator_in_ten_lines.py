"""A custom aggregator: four pure functions give a memory with resets and a method to train."""

import jax
import jax.numpy as jnp
import jax.random as jr

import splagger
from splagger.aggregators import AbstractAggregator


class LogSumExp(AbstractAggregator):
    """log Σ exp(eᵢ), a smooth maximum."""

    def empty(self, e):
        return jnp.full_like(e, -1e9)

    def lift(self, e):
        return e

    def combine(self, a, b):
        return jnp.logaddexp(a, b)

    def read(self, aggregate):
        return jnp.maximum(aggregate, 0.0)


# Use the aggregator in a memory, for example in your own training loop.
memory = splagger.SequenceModel.create(jr.key(0), input_size=6, aggregator=LogSumExp())
inputs, new_task = jr.normal(jr.key(1), (100, 6)), jnp.zeros(100, bool).at[40].set(True)
_, outputs = memory.unroll(memory.start(), inputs, new_task)

# Single steps compute the same function as `unroll`.
state, stepped = memory.start(), []
for x, reset in zip(inputs, new_task, strict=True):
    state, y = memory.step(state, x, reset)
    stepped.append(y)
difference = jnp.abs(outputs - jnp.stack(stepped)).max()
print(
    f"unroll and repeated steps differ by {difference:.1e} over {len(outputs)} steps with a reset"
)
assert difference < 1e-5

# As a method for the paper's training loop, the aggregator needs one row.
method = splagger.Method("splagger-logsumexp", aggregator=LogSumExp())
agent = splagger.build(jr.key(0), method, splagger.Interface(5, splagger.Discrete(4), 100))
print(f"{method.name}: {sum(leaf.size for leaf in jax.tree.leaves(agent)):,} parameters")
