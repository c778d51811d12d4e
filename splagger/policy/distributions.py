"""Distributions over actions."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from splagger.spaces import ActionSpace, Continuous, Discrete, MultiDiscrete

IMPOSSIBLE = -1e30  # the logit of a value that a number does not have


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


class ProductOfCategoricals(eqx.Module):
    """Independent categorical distributions, one per number of the action: P(a) = Πᵢ softmax(logitsᵢ)ₐᵢ.

    Log-probabilities and entropies are sums over the numbers. `logits` holds those of all numbers side by side.

    >>> ProductOfCategoricals(jnp.array([0.0, 5.0, 9.0, 1.0, 2.0]), (2, 3)).mode().tolist()
    [1, 0]
    """

    logits: Float[Array, " actions"]
    sizes: tuple[int, ...] = eqx.field(static=True)

    def sample(self, key: Key[Array, ""]) -> Int[Array, " numbers"]:
        return self.perturbed(MultiDiscrete(self.sizes).noise(key))

    def perturbed(self, noise: Float[Array, " actions"]) -> Int[Array, " numbers"]:
        """Returns the sample that this noise of the action space gives."""
        return jnp.argmax(self._rows(self.logits + noise), axis=1)

    def mode(self) -> Int[Array, " numbers"]:
        return jnp.argmax(self._rows(self.logits), axis=1)

    def log_prob(self, action: Int[Array, " numbers"]) -> Float[Array, ""]:
        one = lambda logits, number: Categorical(logits).log_prob(number)  # noqa: E731
        return jax.vmap(one)(self._rows(self.logits), action).sum()

    def entropy(self) -> Float[Array, ""]:
        return jax.vmap(lambda row: Categorical(row).entropy())(self._rows(self.logits)).sum()

    def probabilities(self) -> Float[Array, " actions"]:
        """Returns the probability of every value of every number, side by side."""
        each = jax.vmap(jax.nn.softmax)(self._rows(self.logits))
        return jnp.concatenate([row[:size] for row, size in zip(each, self.sizes, strict=True)])

    def _rows(self, x: Float[Array, " actions"]) -> Float[Array, "numbers values"]:
        """Returns one row per number; shorter rows end with `IMPOSSIBLE` values."""
        ends = [sum(self.sizes[: i + 1]) for i in range(len(self.sizes) - 1)]
        short = lambda row: (0, max(self.sizes) - row.shape[0])  # noqa: E731
        rows = jnp.split(x, ends)
        return jnp.stack([jnp.pad(r, short(r), constant_values=IMPOSSIBLE) for r in rows])


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


Distribution = Categorical | ProductOfCategoricals | DiagonalGaussian


def distribution_of(
    space: ActionSpace, numbers: Float[Array, " actions"], log_std: Float[Array, " actions"] | None
) -> Distribution:
    """Returns the distribution over a space's actions; `numbers` are logits or means, `log_std` is for the latter."""
    match space:
        case Discrete():
            return Categorical(numbers)
        case MultiDiscrete():
            return ProductOfCategoricals(numbers, space.sizes)
        case Continuous():
            assert log_std is not None
            return DiagonalGaussian(numbers, log_std)
