"""How much the memory's output depends on its inputs and parameters (figure "gradients" of the paper).

The size of a gradient is ‖∂ Σₖ fₜₖ / ∂x‖₂, the norm for the summed output. With `Options.jacobian` it is the
Frobenius norm ‖∂fₜ/∂x‖ of the whole Jacobian.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from splagger.analysis.inputs import Inputs
from splagger.analysis.options import Options
from splagger.memory import SequenceModel

AT_ONCE = 10  # outputs differentiated in parallel; each needs a gradient as large as the model


def gradient_first(
    memory: SequenceModel, inputs: Inputs, key: Key[Array, ""], options: Options
) -> Float[Array, "T 1"]:
    """Computes ‖∂fₜ/∂x₀‖ for every t: how much of the first transition is left."""
    later = inputs.xs[1:]
    outputs = lambda first: outputs_of(memory, jnp.concatenate([first[None], later]))  # noqa: E731
    return norms_over_time(outputs, inputs.xs[0], options.rows)


def gradient_parameters(
    memory: SequenceModel, inputs: Inputs, key: Key[Array, ""], options: Options
) -> Float[Array, "T 1"]:
    """Computes ‖∂fₜ/∂θ‖ for every t, with all parameters of encoder, aggregator and projection in one vector."""
    return norms_over_time(lambda memory: outputs_of(memory, inputs.xs), memory, options.rows)


def gradient_inputs(
    memory: SequenceModel, inputs: Inputs, key: Key[Array, ""], options: Options
) -> Float[Array, "T 1"]:
    """Computes ‖∂f_T/∂xₜ‖ for every t: how much the last output depends on each transition."""
    outputs, back = jax.vjp(lambda xs: outputs_of(memory, xs), inputs.xs)

    def squares(row):
        (gradient,) = back(jnp.zeros_like(outputs).at[inputs.last].set(row))
        return jnp.sum(gradient**2, axis=1)

    total = jax.vmap(squares)(options.rows(outputs.shape[1])).sum(axis=0)
    return jnp.sqrt(total)[:, None]


def outputs_of(memory: SequenceModel, xs: Float[Array, "T X"]) -> Float[Array, "T out"]:
    """Returns all outputs of an initially empty memory on embedded inputs."""
    return memory.unroll_embedded(memory.start(), xs, jnp.zeros(len(xs), bool))[1]


def norms_over_time(
    function: Callable[[Any], Float[Array, "T out"]], x: Any, rows: Callable[[int], Array]
) -> Float[Array, "T 1"]:
    """Computes √ Σ_rows ‖∂(row·f(x)ₜ)/∂x‖² for every t; `x` may be any pytree of arrays.

    The function is linearized once; each output then costs one backward pass.
    """
    outputs, back = jax.vjp(function, x)

    def squares(step, row):
        (gradient,) = back(jnp.zeros_like(outputs).at[step].set(row))
        return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient))

    def norm(step):
        each = jax.lax.map(lambda row: squares(step, row), rows(outputs.shape[1]))
        return jnp.sqrt(each.sum())

    return jax.lax.map(norm, jnp.arange(len(outputs)), batch_size=AT_ONCE)[:, None]
