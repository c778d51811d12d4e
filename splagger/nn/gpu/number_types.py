"""The number types of large matmuls.

On a GPU JAX rounds the factors of a float32 matmul to ten bits (TF32) anyway. Float16 keeps the same ten bits
in half of the bytes, for numbers from 6e-5 to 65504: enough for what goes forward through our networks.
Gradients have no such bounds, and go backward in bfloat16. Sums are float32; the largest intermediate
results are kept in float16.

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
INEXACT = (None, "default", "tensorfloat32", "bfloat16")  # of JAX's precisions


def on_gpu() -> bool:
    """Whether the default device is a GPU."""
    device = getattr(jax.config, "jax_default_device", None)
    platform = getattr(device, "platform", device) or jax.default_backend()
    return platform in ("gpu", "cuda", "rocm")


def matmul_types() -> MatmulTypes:
    """Half precision on GPUs, unless JAX was told to be more exact."""
    inexact = getattr(jax.config, "jax_default_matmul_precision", None) in INEXACT
    return HALF if inexact and on_gpu() else FULL


def rounded(x, dtype) -> Array:
    """x as `dtype`; what is too large for float16 becomes its largest number."""
    if x.dtype == dtype:
        return jnp.asarray(x)
    if dtype == jnp.float16:
        most = float(jnp.finfo(dtype).max)
        x = jnp.clip(x, -most, most)
    return x.astype(dtype)


def matmul(x, weight, dtype) -> Float[Array, "*batch out"]:
    """x W of factors rounded to `dtype`, summed and given in float32."""
    factors = rounded(x, dtype), rounded(weight, dtype)
    return jnp.matmul(*factors, preferred_element_type=jnp.float32)
