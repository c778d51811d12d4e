"""Running mean and variance. They are state of a training run, not parameters."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Moments(eqx.Module):
    """The running mean and variance of vectors, and the number of vectors.

    They begin as 10⁻⁴ vectors with mean 0 and variance 1, as in the authors' code. A feature whose mean exceeds 10⁴
    standard deviations, such as a timestamp, is therefore scaled down too much at first.
    """

    mean: Float[Array, " D"]
    variance: Float[Array, " D"]
    count: Float[Array, ""]

    @classmethod
    def create(cls, size: int) -> "Moments":
        return cls(jnp.zeros(size), jnp.ones(size), jnp.float32(1e-4))

    def normalize(self, x: Float[Array, " D"]) -> Float[Array, " D"]:
        return (x - self.mean) * jax.lax.rsqrt(self.variance + 1e-8)

    def update(self, batch: Float[Array, "n D"]) -> "Moments":
        """Returns the moments of all data so far and `batch`, with the pooled population variance."""
        n = batch.shape[0]
        mean, variance = batch.mean(axis=0), batch.var(axis=0)
        count, delta = self.count + n, mean - self.mean
        squares = self.variance * self.count + variance * n + delta**2 * self.count * n / count
        return Moments(self.mean + delta * n / count, squares / count, count)
