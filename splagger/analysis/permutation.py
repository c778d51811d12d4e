"""How much the memory's output depends on the order of its inputs."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

from splagger.analysis.gradients import outputs_of
from splagger.analysis.inputs import Inputs
from splagger.analysis.options import Options
from splagger.memory import SequenceModel

AT_ONCE = 25  # sequences encoded in parallel


def permutation_difference(
    memory: SequenceModel, inputs: Inputs, key: Key[Array, ""], options: Options
) -> Float[Array, "T 1"]:
    """Computes ‖u(x₀ … xₜ) - u(x_π₀ … x_πₜ)‖ for every t, with a random order π for each t and u = f / ‖f‖."""
    length = len(inputs.xs)
    original = outputs_of(memory, inputs.xs)

    def difference(key, step):
        # Inputs after `step` do not matter: the memory is causal.
        order = prefix_permutation(key, step, length)
        return jnp.linalg.norm(
            _unit(original[step]) - _unit(outputs_of(memory, inputs.xs[order])[step])
        )

    pairs = jr.split(key, length), jnp.arange(length)
    return jax.lax.map(lambda pair: difference(*pair), pairs, batch_size=AT_ONCE)[:, None]


def prefix_permutation(
    key: Key[Array, ""], step: Int[Array, ""] | int, length: int
) -> Int[Array, " T"]:
    """Draws a uniformly random order of 0 … step, followed by the remaining indices in order.

    >>> prefix_permutation(jr.key(0), 1, 5)[2:].tolist()
    [2, 3, 4]
    """
    drawn = jr.uniform(key, (length,))
    indices = jnp.arange(length)
    return jnp.argsort(jnp.where(indices <= step, drawn, 1.0 + indices))


def _unit(output):
    return output / jnp.maximum(jnp.linalg.norm(output), jnp.finfo(output.dtype).tiny)
