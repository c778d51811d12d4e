"""A latent turned into a policy: W = Σₖ z̃ₖ Hₖ with z̃ = [z; 1], for every array of the base policy.

The same policy in three forms. `generate` builds its arrays: the definition, 0.8 MB a sample at full size.
`policy` never builds them: each layer computes Σₖ z̃ₖ (x Hₖ), one wide matmul and a contraction. `policies`
is the same for a batch, with a derivative of its own.
"""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from splagger.nn import MLP, Linear
from splagger.nn.gru_kernel import available
from splagger.nn.precision import HALF, MatmulTypes, matmul, matmul_types, rounded
from splagger.policy import generated_hopper, generated_kernel
from splagger.policy.actor_critic import ActorCritic
from splagger.policy.generated_kernel import Kernels


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

    def prepared(self) -> "LinearHeads":
        """The same for many steps: what a GPU reads again in each of them takes half of the bytes."""
        weight = rounded(self.weight, matmul_types().forward)
        return eqx.tree_at(lambda heads: heads.weight, self, weight)

    @property
    def wide(self) -> Float[Array, "in wide"]:
        """All terms side by side."""
        return self.weight.reshape(self.weight.shape[0], -1)


class GeneratedLinear(eqx.Module):
    """The layer W x + b whose W and b are never formed."""

    heads: LinearHeads
    terms: Float[Array, " terms"]

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        wide = matmul(x, self.heads.wide, self.heads.weight.dtype)
        return self.terms @ (wide.reshape(self.heads.bias.shape) + self.heads.bias)


class GeneratedLinears(eqx.Module):
    """One such layer a sample, for a batch of samples."""

    heads: LinearHeads
    terms: Float[Array, "B terms"]

    def __call__(self, x: Float[Array, "B in"]) -> Float[Array, "B out"]:
        kernels = _kernels(*x.shape, *self.heads.bias.shape)
        if kernels is not None:
            return _generated_by_kernels(kernels, self.heads, self.terms, x)
        return _generated(matmul_types(), self.heads, self.terms, x)


@ft.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _generated(types: MatmulTypes, heads: LinearHeads, terms, x):
    """yₒ = Σₖ z̃ₖ (Σᵢ xᵢ Hᵢₖₒ + bₖₒ) of every sample."""
    return _generated_forward(types, heads, terms, x)[0]


def _generated_forward(types, heads, terms, x):
    wide = rounded(x, types.forward) @ rounded(heads.wide, types.forward)
    wide = wide.reshape(-1, *heads.bias.shape)
    y = jnp.einsum("nk,nko->no", terms, wide.astype(jnp.float32)) + terms @ heads.bias
    return y, (heads, terms, x, wide)


def _generated_backward(types, residuals, d_y):
    heads, terms, x, wide = residuals
    d_terms = jnp.einsum("nko,no->nk", wide.astype(jnp.float32), d_y) + d_y @ heads.bias.T
    d_wide = (terms[:, :, None] * d_y[:, None, :]).astype(types.backward).reshape(len(x), -1)
    d_x = matmul(d_wide, heads.wide.T, types.backward)
    d_weight = matmul(x.T, d_wide, types.backward).reshape(heads.weight.shape)
    return LinearHeads(d_weight, terms.T @ d_y), d_terms, d_x


_generated.defvjp(_generated_forward, _generated_backward)


def _kernels(*sizes: int) -> Kernels | None:
    """The best ones that this device has for a layer of so many samples, inputs, terms and outputs."""
    if matmul_types() != HALF:
        return None
    if generated_hopper.fits(*sizes) and generated_hopper.available():
        return generated_hopper.KERNELS
    return generated_kernel.KERNELS if generated_kernel.fits(*sizes) and available() else None


@ft.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _generated_by_kernels(kernels: Kernels, heads: LinearHeads, terms, x):
    """The same in half precision, by kernels that add the terms where they compute them."""
    return _by_kernels_forward(kernels, heads, terms, x)[0]


def _by_kernels_forward(kernels, heads, terms, x):
    x_half, weight = (rounded(factor, HALF.forward) for factor in (x, heads.weight))
    return kernels.forward(x_half, terms.T, weight, heads.bias), (heads, terms, x)


def _by_kernels_backward(kernels, residuals, d_y):
    heads, terms, x = residuals
    d_half, x_half, weight = (rounded(factor, HALF.backward) for factor in (d_y, x, heads.weight))
    d_x, d_terms = kernels.by_inputs(d_half, x_half, terms.T, weight)
    d_heads = LinearHeads(kernels.by_weight(d_half, x_half, terms.T), terms.T @ d_y)
    return d_heads, d_terms.T + d_y @ heads.bias.T, d_x


_generated_by_kernels.defvjp(_by_kernels_forward, _by_kernels_backward)


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
        """The policy of this latent, its layers lazy: the same function, without its arrays."""
        terms = _extend(latent)
        return _map_layers(lambda heads: GeneratedLinear(heads, terms), self.heads, LinearHeads)

    def prepared(self) -> "Hypernetwork":
        """The same for many steps: weights as the device reads them fastest."""
        heads = _map_layers(lambda heads: heads.prepared(), self.heads, LinearHeads)
        layers = self.heads.actor.layers
        fits = generated_hopper.Actor.fits([layer.weight.shape for layer in layers])
        plain = not (fits and self.heads.actor.activation is jnp.tanh)
        if plain or matmul_types() != HALF or not generated_hopper.available():
            return Hypernetwork(heads)
        weights = [layer.weight for layer in heads.actor.layers]
        return ActingHypernetwork(
            heads, generated_hopper.Actor.create(weights, [layer.bias for layer in layers])
        )

    def policies(self, latents: Float[Array, "B K"]) -> ActorCritic:
        """The policies of a batch of latents as one, which takes a batch of inputs."""
        terms = jax.vmap(_extend)(latents)
        return _map_layers(lambda heads: GeneratedLinears(heads, terms), self.heads, LinearHeads)


class ActingHypernetwork(Hypernetwork):
    """One whose actors are computed by one kernel."""

    actor: generated_hopper.Actor

    def policy(self, latent: Float[Array, " K"]) -> ActorCritic:
        policy = super().policy(latent)
        return ActorCritic(MLP((ft.partial(self.actor, _extend(latent)),)), policy.critic)


def _map_layers(function, network, kind: type):
    return jax.tree.map(function, network, is_leaf=lambda node: isinstance(node, kind))


def _extend(latent):
    return jnp.concatenate([latent, jnp.ones(1)])
