"""The number types of large matmuls.

On a GPU JAX rounds the factors of a float32 matmul to ten bits (TF32) anyway. Float16 keeps the same ten bits
in half of the bytes, and its range is enough for what goes forward through our networks: activations
bounded by tanh, times weights. Gradients have no such bounds, and go backward in bfloat16. Sums are float32.

Whoever asks JAX for more, by `jax.default_matmul_precision("float32")`, gets float32 here too.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class MatmulTypes(NamedTuple):
    """What the factors of a matmul are rounded to, on the way forward and in its derivative."""

    forward: Any
    backward: Any


FULL = MatmulTypes(jnp.float32, jnp.float32)
HALF = MatmulTypes(jnp.float16, jnp.bfloat16)


def matmul_types() -> MatmulTypes:
    """Half precision on GPUs, unless JAX was told to be more exact."""
    asked = getattr(jax.config, "jax_default_matmul_precision", None)
    exact = asked is not None and str(asked).lower() not in ("default", "fastest", "tensorfloat32")
    return FULL if exact or jax.default_backend() != "gpu" else HALF


def matmul(x, weight, dtype) -> Float[Array, "*batch out"]:
    """x W of factors rounded to `dtype`, summed and given in float32."""
    return jnp.matmul(x.astype(dtype), weight.astype(dtype), preferred_element_type=jnp.float32)
