"""A latent turned into a policy: W = Σₖ z̃ₖ Hₖ with z̃ = [z; 1], for every array of the base policy.

The same policy in two forms. `generate` builds its arrays: the definition, 0.8 MB a sample at full
size. `policy` never builds them: each layer computes Σₖ z̃ₖ (Hₖ x), one wide matmul and a contraction.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from splagger.nn import Linear
from splagger.policy.actor_critic import ActorCritic


class GeneratedLinear(eqx.Module):
    """The layer W x + b whose W and b are never formed."""

    heads: Linear
    latent: Float[Array, " K1"]

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        terms, outputs, inputs = self.heads.weight.shape
        wide = self.heads.weight.reshape(terms * outputs, inputs) @ x
        return self.latent @ (wide.reshape(terms, outputs) + self.heads.bias)


class Hypernetwork(eqx.Module):
    """Emits every array of a policy as an affine function of the latent.

    `heads` looks like the policy itself, with one more axis in front of every array: the terms of
    z̃, of which the last, always 1, carries the constant.
    """

    heads: ActorCritic

    @classmethod
    def create(cls, policy: ActorCritic, latent_size: int) -> "Hypernetwork":
        """Bias-HyperInit: every latent starts as `policy`."""

        def head(array):
            return jnp.zeros((latent_size + 1, *array.shape)).at[-1].set(array)

        return cls(jax.tree.map(head, policy))

    def generate(self, latent: Float[Array, " K"]) -> ActorCritic:
        """The policy of this latent, its arrays computed."""
        extended = _extend(latent)
        return jax.tree.map(lambda head: jnp.tensordot(extended, head, axes=1), self.heads)

    def policy(self, latent: Float[Array, " K"]) -> ActorCritic:
        """The policy of this latent, its layers lazy: the same function, made for large batches."""
        extended = _extend(latent)
        is_layer = lambda node: isinstance(node, Linear)  # noqa: E731
        lazy = lambda heads: GeneratedLinear(heads, extended)  # noqa: E731
        return jax.tree.map(lazy, self.heads, is_leaf=is_layer)


def _extend(latent):
    return jnp.concatenate([latent, jnp.ones(1)])
