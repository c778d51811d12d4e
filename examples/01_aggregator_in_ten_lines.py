"""A new aggregator is four pure functions; laws, scan, resets and a whole method follow from them."""

import jax
import jax.numpy as jnp
import jax.random as jr

import splagger
from splagger.aggregators import AbstractAggregator


class LogSumExp(AbstractAggregator):
    """log Σ exp(eᵢ): a maximum with soft edges."""

    def empty(self, e):
        return jnp.full_like(e, -1e9)

    def lift(self, e):
        return e

    def combine(self, a, b):
        return jnp.logaddexp(a, b)

    def read(self, aggregate):
        return jnp.maximum(aggregate, 0.0)


# In your own training loop: a memory with this aggregator …
memory = splagger.SequenceModel.create(jr.key(0), input_size=6, aggregator=LogSumExp())
inputs, new_task = jr.normal(jr.key(1), (100, 6)), jnp.zeros(100, bool).at[40].set(True)
_, outputs = memory.unroll(memory.start(), inputs, new_task)

# … is the same function, step by step.
state, stepped = memory.start(), []
for x, reset in zip(inputs, new_task, strict=True):
    state, y = memory.step(state, x, reset)
    stepped.append(y)
difference = jnp.abs(outputs - jnp.stack(stepped)).max()
print(
    f"unroll and repeated steps differ by {difference:.1e} over {len(outputs)} steps with a reset"
)
assert difference < 1e-5

# As a method of the paper's training loop: one row.
method = splagger.Method("splagger-logsumexp", aggregator=LogSumExp())
agent = splagger.build(jr.key(0), method, splagger.Interface(5, splagger.Discrete(4), 100))
print(f"{method.name}: {sum(leaf.size for leaf in jax.tree.leaves(agent)):,} parameters")
