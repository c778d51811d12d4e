"""Distributions over actions."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from splagger.spaces import Continuous, Discrete


class Categorical(eqx.Module):
    """A categorical distribution: P(a) = softmax(logits)ₐ.

    >>> Categorical(jnp.array([0.0, 5.0])).mode().item()
    1
    """

    logits: Float[Array, " actions"]

    def sample(self, key: Key[Array, ""]) -> Int[Array, ""]:
        return self.perturbed(Discrete(self.logits.shape[0]).noise(key))

    def perturbed(self, noise: Float[Array, " actions"]) -> Int[Array, ""]:
        """Returns the sample that this noise of the action space gives."""
        return jnp.argmax(self.logits + noise)

    def mode(self) -> Int[Array, ""]:
        return jnp.argmax(self.logits)

    def log_prob(self, action: Int[Array, ""]) -> Float[Array, ""]:
        # A one-hot product instead of an index, so that its gradient is not a scatter.
        chosen = jax.nn.one_hot(action, self.logits.shape[0])
        return jnp.sum(jax.nn.log_softmax(self.logits) * chosen)

    def entropy(self) -> Float[Array, ""]:
        return -jnp.sum(jax.nn.softmax(self.logits) * jax.nn.log_softmax(self.logits))


class DiagonalGaussian(eqx.Module):
    """N(mean, std²) in each dimension, with std = max(1e-6, exp(log_std)) and without squashing.

    >>> DiagonalGaussian(jnp.array([2.0]), jnp.array([0.0])).mode().tolist()
    [2.0]
    """

    mean: Float[Array, " actions"]
    log_std: Float[Array, " actions"]

    @property
    def std(self) -> Float[Array, " actions"]:
        return jnp.maximum(1e-6, jnp.exp(self.log_std))

    def sample(self, key: Key[Array, ""]) -> Float[Array, " actions"]:
        return self.perturbed(Continuous(self.mean.shape[0]).noise(key))

    def perturbed(self, noise: Float[Array, " actions"]) -> Float[Array, " actions"]:
        """Returns the sample that this noise of the action space gives."""
        return self.mean + self.std * noise

    def mode(self) -> Float[Array, " actions"]:
        return self.mean

    def log_prob(self, action: Float[Array, " actions"]) -> Float[Array, ""]:
        standard = (action - self.mean) / self.std
        return jnp.sum(-0.5 * standard**2 - jnp.log(self.std) - 0.5 * jnp.log(2 * jnp.pi))

    def entropy(self) -> Float[Array, ""]:
        return jnp.sum(0.5 + 0.5 * jnp.log(2 * jnp.pi) + jnp.log(self.std))


Distribution = Categorical | DiagonalGaussian
