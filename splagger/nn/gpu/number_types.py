"""The number types of large matmuls.

On a GPU, JAX rounds the factors of a float32 matmul to ten bits (TF32) by default. Float16 keeps the same ten bits
in half the bytes, for numbers from 6e-5 to 65504. This range is enough for the forward pass of our networks.
Gradients are not bounded like this, so the backward pass uses bfloat16. Sums are float32; the largest
intermediate results are stored in float16.

`jax.default_matmul_precision("float32")` selects float32 here too.
"""

import functools as ft
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class MatmulTypes(NamedTuple):
    """The types to which a matmul's factors are rounded, in the forward pass and in the derivative."""

    forward: Any
    backward: Any


FULL = MatmulTypes(jnp.float32, jnp.float32)
HALF = MatmulTypes(jnp.float16, jnp.bfloat16)
# Numbers of inputs: from LARGE on, layers are rounded; up to TINY, XLA needs no matmul.
LARGE, TINY = 64, 32
INEXACT = (None, "default", "tensorfloat32", "bfloat16")  # JAX's precisions below float32


def on_gpu() -> bool:
    """Returns whether the default device is a GPU."""
    device = getattr(jax.config, "jax_default_device", None)
    platform = getattr(device, "platform", device) or jax.default_backend()
    return platform in ("gpu", "cuda", "rocm")


def matmul_types() -> MatmulTypes:
    """Returns half precision on GPUs, unless JAX is configured for a higher precision."""
    inexact = getattr(jax.config, "jax_default_matmul_precision", None) in INEXACT
    return HALF if inexact and on_gpu() else FULL


def rounded(x, dtype) -> Array:
    """Returns x as `dtype`. Numbers outside the range of float16 are clipped."""
    if x.dtype == dtype:
        return jnp.asarray(x)
    if dtype == jnp.float16:
        most = float(jnp.finfo(dtype).max)
        x = jnp.clip(x, -most, most)
    return x.astype(dtype)


def layer_product(x, weight) -> Float[Array, " out"]:
    """Returns W x as acting and learning both compute it: probabilities of actions then agree as far as possible.

    In half precision, large layers round their factors to float16, and small ones compute in float32. A tiny layer
    needs no matmul: its product is part of the kernel that uses it. Derivatives are JAX's default.
    """
    if weight.dtype != jnp.float32 or matmul_types() == FULL:
        return matmul(x, weight.T, weight.dtype)
    return (_large_product if weight.shape[1] >= LARGE else _small_product)(x, weight)


@jax.custom_jvp
def _large_product(x, weight):
    return matmul(x, weight.T, HALF.forward)


@jax.custom_jvp
def _small_product(x, weight):
    if weight.shape[1] > TINY:
        return jnp.matmul(x, weight.T, precision=jax.lax.Precision.HIGHEST)
    return (x[None] * weight).sum(-1)


def _differentiate(product, primals, tangents):
    (x, weight), (d_x, d_weight) = primals, tangents
    return product(x, weight), jnp.matmul(d_x, weight.T) + jnp.matmul(x, d_weight.T)


_large_product.defjvp(ft.partial(_differentiate, _large_product))
_small_product.defjvp(ft.partial(_differentiate, _small_product))


def matmul(x, weight, dtype) -> Float[Array, "*batch out"]:
    """Returns x W with factors rounded to `dtype`, and sums and results in float32."""
    factors = rounded(x, dtype), rounded(weight, dtype)
    return jnp.matmul(*factors, preferred_element_type=jnp.float32)
