"""Float64 numbers as pairs of uint32 (low word, high word), so that JAX carries them without losing a bit."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

SIGN, TOP = np.uint32(1 << 31), np.uint32(0x7FF)  # TOP: the exponent of infinities and NaNs
SHIFT = np.uint32(1023 - 127)  # difference between the exponent biases of the two formats
LOST = np.uint32((1 << 29) - 1)  # the low bits of a float64 that do not fit into a float32
HALF = np.uint32(1 << 28)


def widen(numbers: Float[Array, "*n"]) -> UInt32[Array, "*n 2"]:
    """Converts float32 to float64; subnormal float32 numbers become 0.

    >>> np.asarray(widen(jnp.float32([1.5, -0.1]))).view(np.float64).ravel().tolist()
    [1.5, -0.10000000149011612]
    """
    bits = jax.lax.bitcast_convert_type(numbers, jnp.uint32)
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    wide = jnp.where(exponent == 0xFF, TOP, exponent + SHIFT)
    high = bits & SIGN | jnp.where(exponent == 0, 0, wide << 20 | fraction >> 3)
    return jnp.stack([jnp.where(exponent == 0, 0, fraction << 29), high], axis=-1)


def narrow(pairs: UInt32[Array, "*n 2"]) -> Float[Array, "*n"]:
    """Rounds float64 to the nearest float32, ties to even; results below the normal range become 0."""
    low, high = pairs[..., 0], pairs[..., 1]
    exponent = high >> 20 & TOP
    kept = (exponent - SHIFT) << 23 | (high & 0xFFFFF) << 3 | low >> 29
    rest = low & LOST
    kept += (rest > HALF) | (rest == HALF) & (kept & 1 == 1)  # may carry into the exponent
    infinity = jnp.uint32(0xFF << 23)
    special = infinity | (exponent == TOP) & ((high & 0xFFFFF | low) != 0)
    kept = jnp.where(exponent > SHIFT + 0xFE, special, kept)
    kept = jnp.where(exponent <= SHIFT, 0, kept)
    return jax.lax.bitcast_convert_type(high & SIGN | kept, jnp.float32)


def to_float64(pairs: np.ndarray) -> np.ndarray:
    """Converts words […, n, 2] to numbers […, n], on the host."""
    return np.ascontiguousarray(pairs).view(np.float64)[..., 0]


def from_float64(numbers: np.ndarray) -> np.ndarray:
    """Converts numbers […, n] to words […, n, 2], on the host."""
    return np.ascontiguousarray(numbers)[..., None].view(np.uint32)
