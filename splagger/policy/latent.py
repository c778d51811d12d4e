"""Latents: how the memory's output conditions the policy."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from splagger.errors import SettingError
from splagger.nn import Moments


class AbstractLatent(eqx.Module):
    """A map from the memory's output and standard normal `noise` to the policy's latent."""

    @abstractmethod
    def size(self, output_size: int) -> int:
        """Returns the size of the latent."""

    def noise_size(self, output_size: int) -> int:
        """Returns the number of random numbers behind one latent."""
        return 0

    @abstractmethod
    def __call__(self, output: Float[Array, " out"], noise: Float[Array, " z"], moments: Moments):
        """Returns the latent of an output."""

    def kl(self, output: Float[Array, " out"], previous: Float[Array, " out"]) -> Float[Array, ""]:
        """Returns the KL divergence of this belief from the previous one; 0 for latents without a belief."""
        return jnp.zeros(())

    def prior(self, output: Float[Array, " out"]) -> Float[Array, " out"]:
        """Returns the output that represents the prior, a standard normal."""
        return jnp.zeros_like(output)


class Deterministic(AbstractLatent):
    """The output itself, without noise."""

    def size(self, output_size):
        return output_size

    def __call__(self, output, noise, moments):
        return output


class Gaussian(AbstractLatent):
    """A reparameterized sample of N(mean, exp(log variance)), where output = [mean; log variance]."""

    def size(self, output_size):
        return _half(output_size)

    def noise_size(self, output_size):
        return _half(output_size)

    def __call__(self, output, noise, moments):
        mean, log_variance = jnp.split(output, 2)
        return mean + jnp.exp(0.5 * log_variance) * noise

    def kl(self, output, previous):
        return gaussian_kl(output, previous)


class Belief(AbstractLatent):
    """The normalized (mean, log variance), without gradient into the memory (PEARL-vari)."""

    def size(self, output_size):
        return 2 * _half(output_size)

    def __call__(self, output, noise, moments):
        return moments.normalize(jax.lax.stop_gradient(output))


def _half(output_size: int) -> int:
    """Returns the size of the mean, which is that of the log variance."""
    if output_size % 2:
        raise SettingError(
            "network.output_size must be even, because the output consists of a mean and a log variance, "
            f"got {output_size}"
        )
    return output_size // 2


def gaussian_kl(q: Float[Array, " n"], p: Float[Array, " n"]) -> Float[Array, ""]:
    """Returns KL(q ‖ p) of diagonal Gaussians given as [mean; log variance]."""
    (mean_q, log_q), (mean_p, log_p) = jnp.split(q, 2), jnp.split(p, 2)
    ratio = jnp.exp(log_q - log_p) + (mean_q - mean_p) ** 2 * jnp.exp(-log_p)
    return 0.5 * jnp.sum(ratio - 1.0 + log_p - log_q)
