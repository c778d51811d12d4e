"""Initializers. Each takes a key and a shape (out, in) and returns a float32 matrix."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key


def uniform_fan_in(key: Key[Array, ""], shape: tuple[int, ...], fan_in: int) -> Float[Array, "..."]:
    """Draws from U(±1/√fan_in), the default for linear layers in the reference code's framework."""
    bound = fan_in**-0.5
    return jr.uniform(key, shape, minval=-bound, maxval=bound)


def xavier_uniform(
    key: Key[Array, ""], shape: tuple[int, int], outputs: int | None = None
) -> Float[Array, "out in"]:
    """Draws from U(±√(6/(in + out))); `outputs` are those of a larger matrix of which this is a part."""
    bound = (6 / (shape[1] + (outputs or shape[0]))) ** 0.5
    return jr.uniform(key, shape, minval=-bound, maxval=bound)


def orthogonal(
    key: Key[Array, ""], shape: tuple[int, int], gain: float = 1.0
) -> Float[Array, "out in"]:
    """Draws a uniformly distributed matrix with orthonormal rows or columns (the fewer ones), times `gain`.

    Computes the polar factor of a Gaussian matrix by Newton-Schulz iteration, X ← 1.5 X - 0.5 X XᵀX. Unlike a
    QR decomposition, it consists of plain matmuls, which compile fast and batch under vmap.
    """
    x = jr.normal(key, (max(shape), min(shape)))
    matmul = ft.partial(jnp.matmul, precision="highest")
    polish = lambda _, x: 1.5 * x - 0.5 * matmul(x, matmul(x.T, x))  # noqa: E731
    x = jax.lax.fori_loop(0, 50, polish, x / jnp.linalg.norm(x))
    return gain * (x if shape[0] >= shape[1] else x.T)


def normc(key: Key[Array, ""], shape: tuple[int, int], gain: float = 1.0) -> Float[Array, "out in"]:
    """Draws rows from N(0, I) and rescales them to norm `gain`."""
    rows = jr.normal(key, shape)
    return gain * rows / jnp.linalg.norm(rows, axis=1, keepdims=True)


def kaiming_uniform(
    key: Key[Array, ""], shape: tuple[int, int], gain: float = 2**0.5
) -> Float[Array, "out in"]:
    """Draws from U(±gain·√(3/fan_in))."""
    bound = gain * (3 / shape[1]) ** 0.5
    return jr.uniform(key, shape, minval=-bound, maxval=bound)
