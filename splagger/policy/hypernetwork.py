"""A latent turned into a policy: W = Σₖ z̃ₖ Hₖ with z̃ = [z; 1], for every array of the base policy.

The same policy in two forms. `generate` builds its arrays: the definition, 0.8 MB a sample at full size.
`policy` never builds them: each layer computes Σₖ z̃ₖ (x Hₖ), one wide matmul and a contraction.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from splagger.nn import Linear
from splagger.policy.actor_critic import ActorCritic


class LinearHeads(eqx.Module):
    """What generates a linear layer: one term for each number of z̃, the last of them the constant.

    The terms lie between inputs and outputs, so that one matmul with all of them needs no transposition.
    """

    weight: Float[Array, "in terms out"]
    bias: Float[Array, "terms out"]

    @classmethod
    def create(cls, layer: Linear, latent_size: int) -> "LinearHeads":
        """Bias-HyperInit: every latent generates `layer`."""
        outputs, inputs = layer.weight.shape
        weight = jnp.zeros((inputs, latent_size + 1, outputs)).at[:, -1].set(layer.weight.T)
        return cls(weight, jnp.zeros((latent_size + 1, outputs)).at[-1].set(layer.bias))

    def generate(self, terms: Float[Array, " terms"]) -> Linear:
        return Linear(jnp.einsum("iko,k->oi", self.weight, terms), terms @ self.bias)


class GeneratedLinear(eqx.Module):
    """The layer W x + b whose W and b are never formed."""

    heads: LinearHeads
    terms: Float[Array, " terms"]

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        inputs, terms, outputs = self.heads.weight.shape
        wide = x @ self.heads.weight.reshape(inputs, terms * outputs)
        return self.terms @ wide.reshape(terms, outputs) + self.terms @ self.heads.bias


class Hypernetwork(eqx.Module):
    """Emits every array of a policy as an affine function of the latent.

    `heads` looks like the policy itself, with `LinearHeads` where the policy has its layers.
    """

    heads: ActorCritic

    @classmethod
    def create(cls, policy: ActorCritic, latent_size: int) -> "Hypernetwork":
        """Bias-HyperInit: every latent starts as `policy`."""
        return cls(
            _map_layers(lambda layer: LinearHeads.create(layer, latent_size), policy, Linear)
        )

    def generate(self, latent: Float[Array, " K"]) -> ActorCritic:
        """The policy of this latent, its arrays computed."""
        terms = _extend(latent)
        return _map_layers(lambda heads: heads.generate(terms), self.heads, LinearHeads)

    def policy(self, latent: Float[Array, " K"]) -> ActorCritic:
        """The policy of this latent, its layers lazy: the same function, made for large batches."""
        terms = _extend(latent)
        return _map_layers(lambda heads: GeneratedLinear(heads, terms), self.heads, LinearHeads)


def _map_layers(function, network, kind: type):
    return jax.tree.map(function, network, is_leaf=lambda node: isinstance(node, kind))


def _extend(latent):
    return jnp.concatenate([latent, jnp.ones(1)])
