"""The hypernetwork, which turns a latent into a policy: W = Σₖ z̃ₖ Hₖ with z̃ = [z; 1], for every array W.

The policy has three equivalent forms. `generate` builds its arrays: the definition, 0.8 MB per sample at full
size. `policy` does not build them: each layer computes Σₖ z̃ₖ (x Hₖ) by one wide matmul and a contraction.
`policies` does the same for a batch, with a derivative written by hand.
"""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from splagger.nn import MLP, Linear, Preparable, prepare
from splagger.nn.gpu import cuda, generated_layers, generated_layers_hopper, gru_kernel
from splagger.nn.gpu.generated_layers import Kernels
from splagger.nn.gpu.number_types import HALF, MatmulTypes, matmul, matmul_types, rounded
from splagger.policy.actor_critic import ActorCritic


class LinearHeads(Preparable):
    """The arrays that generate a linear layer: one term per number of z̃, of which the last is the constant 1.

    The term axis is between inputs and outputs, so that one matmul with all terms needs no transposition.
    """

    weight: Float[Array, "in terms out"]
    bias: Float[Array, "terms out"]

    @classmethod
    def create(cls, layer: Linear, latent_size: int) -> "LinearHeads":
        """Builds heads that generate `layer` for every latent (Bias-HyperInit)."""
        outputs, inputs = layer.weight.shape
        weight = jnp.zeros((inputs, latent_size + 1, outputs)).at[:, -1].set(layer.weight.T)
        return cls(weight, jnp.zeros((latent_size + 1, outputs)).at[-1].set(layer.bias))

    def generate(self, terms: Float[Array, " terms"]) -> Linear:
        return Linear(jnp.einsum("iko,k->oi", self.weight, terms), terms @ self.bias)

    def prepared(self) -> "LinearHeads":
        """Returns the same heads for many steps, with the weight in the device's number type."""
        weight = rounded(self.weight, matmul_types().forward)
        return eqx.tree_at(lambda heads: heads.weight, self, weight)

    @property
    def wide(self) -> Float[Array, "in wide"]:
        """The weight with all terms side by side."""
        return self.weight.reshape(self.weight.shape[0], -1)


class GeneratedLinear(eqx.Module):
    """The layer W x + b, computed without forming W and b."""

    heads: LinearHeads
    terms: Float[Array, " terms"]

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        wide = _products(self.heads, x, self.heads.weight.dtype).astype(jnp.float32)
        wide = wide.reshape(self.heads.bias.shape) + self.heads.bias
        return jnp.matmul(self.terms, wide, precision=_precision())


class GeneratedLinears(eqx.Module):
    """One `GeneratedLinear` per sample, for a batch of samples."""

    heads: LinearHeads
    terms: Float[Array, "B terms"]

    def __call__(self, x: Float[Array, "B in"]) -> Float[Array, "B out"]:
        kernels = _choose_kernels(*x.shape, *self.heads.bias.shape)
        if kernels is not None:
            return _generated_by_kernels(kernels, self.heads, self.terms, x)
        return _generated(matmul_types(), self.heads, self.terms, x)


def _products(heads: LinearHeads, x, dtype):
    """Returns x Hₖ for all terms side by side; in float32 if kernels compute other layers, as they do."""
    if _use_kernels():
        return matmul(x, heads.wide, dtype)
    return rounded(x, dtype) @ rounded(heads.wide, dtype)


def _precision() -> jax.lax.Precision | None:
    return jax.lax.Precision.HIGHEST if _use_kernels() else None


@ft.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _generated(types: MatmulTypes, heads: LinearHeads, terms, x):
    """Computes yₒ = Σₖ z̃ₖ (Σᵢ xᵢ Hᵢₖₒ + bₖₒ) for every sample."""
    return _generated_forward(types, heads, terms, x)[0]


def _generated_forward(types, heads, terms, x):
    wide = _products(heads, x, types.forward).reshape(-1, *heads.bias.shape)
    sums = jnp.einsum("nk,nko->no", terms, wide.astype(jnp.float32), precision=_precision())
    y = sums + jnp.matmul(terms, heads.bias, precision=_precision())
    return y, (heads, terms, x, wide)


def _generated_backward(types, residuals, d_y):
    heads, terms, x, wide = residuals
    d_terms = jnp.einsum("nko,no->nk", wide.astype(jnp.float32), d_y) + d_y @ heads.bias.T
    d_wide = (terms[:, :, None] * d_y[:, None, :]).astype(types.backward).reshape(len(x), -1)
    d_x = matmul(d_wide, heads.wide.T, types.backward)
    d_weight = matmul(x.T, d_wide, types.backward).reshape(heads.weight.shape)
    return LinearHeads(d_weight, terms.T @ d_y), d_terms, d_x


_generated.defvjp(_generated_forward, _generated_backward)


@ft.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _generated_by_kernels(kernels: Kernels, heads: LinearHeads, terms, x):
    """Computes the same as `_generated` in half precision, by kernels that do not store the terms."""
    return _by_kernels_forward(kernels, heads, terms, x)[0]


def _by_kernels_forward(kernels, heads, terms, x):
    x_half, weight = (rounded(factor, HALF.forward) for factor in (x, heads.weight))
    return kernels.forward(x_half, terms.T, weight, heads.bias), (heads, terms, x)


def _by_kernels_backward(kernels, residuals, d_y):
    heads, terms, x = residuals
    d_x, d_terms, d_weight = kernels.backward(d_y, x, terms.T, heads.weight)
    return LinearHeads(d_weight, terms.T @ d_y), d_terms.T + d_y @ heads.bias.T, d_x


_generated_by_kernels.defvjp(_by_kernels_forward, _by_kernels_backward)


def _use_kernels() -> bool:
    """Returns whether kernels for generated layers are switched on, and the device uses half precision."""
    return cuda.enabled() and matmul_types() == HALF


def _choose_kernels(*sizes: int) -> Kernels | None:
    """Returns this device's fastest kernels for a layer with these samples, inputs, terms and outputs, if any."""
    if not _use_kernels():
        return None
    if generated_layers_hopper.fits(*sizes) and generated_layers_hopper.available():
        return generated_layers_hopper.KERNELS
    triton = generated_layers.fits(*sizes) and gru_kernel.available()
    return generated_layers.KERNELS if triton else None


class Hypernetwork(Preparable):
    """A network that generates every array of a policy as an affine function of the latent.

    `heads` has the structure of the policy, with `LinearHeads` in place of its layers.
    """

    heads: ActorCritic

    @classmethod
    def create(cls, policy: ActorCritic, latent_size: int) -> "Hypernetwork":
        """Builds a hypernetwork that generates `policy` for every latent (Bias-HyperInit)."""
        return cls(
            _map_layers(lambda layer: LinearHeads.create(layer, latent_size), policy, Linear)
        )

    def generate(self, latent: Float[Array, " K"]) -> ActorCritic:
        """Returns the policy of a latent, with its arrays computed."""
        terms = _extend(latent)
        return _map_layers(lambda heads: heads.generate(terms), self.heads, LinearHeads)

    def policy(self, latent: Float[Array, " K"]) -> ActorCritic:
        """Returns the policy of a latent with lazy layers: the same function, without its arrays."""
        terms = _extend(latent)
        return _map_layers(lambda heads: GeneratedLinear(heads, terms), self.heads, LinearHeads)

    def prepared(self) -> "Hypernetwork":
        """Returns the same hypernetwork for many steps, with weights in the device's number type and layout."""
        ready = eqx.tree_at(lambda network: network.heads, self, prepare(self.heads))
        if not _use_kernels():
            return ready
        actor = ready.heads.actor
        weights, biases = zip(*((layer.weight, layer.bias) for layer in actor.layers), strict=True)
        fits = generated_layers_hopper.Actor.fits([weight.shape for weight in weights])
        if not (fits and actor.activation is jnp.tanh and generated_layers_hopper.available()):
            return ready
        return ActingHypernetwork(
            ready.heads, generated_layers_hopper.Actor.create(weights, biases)
        )

    def policies(self, latents: Float[Array, "B K"]) -> ActorCritic:
        """Returns the policies of a batch of latents as one policy, which takes a batch of inputs."""
        terms = jax.vmap(_extend)(latents)
        return _map_layers(lambda heads: GeneratedLinears(heads, terms), self.heads, LinearHeads)


class ActingHypernetwork(Hypernetwork):
    """A hypernetwork for acting on Hopper GPUs: one kernel computes all layers of the actor."""

    actor: generated_layers_hopper.Actor

    def policy(self, latent: Float[Array, " K"]) -> ActorCritic:
        policy = super().policy(latent)
        return ActorCritic(MLP((ft.partial(self.actor, _extend(latent)),)), policy.critic)


def _map_layers(function, network, kind: type):
    return jax.tree.map(function, network, is_leaf=lambda node: isinstance(node, kind))


def _extend(latent):
    return jnp.concatenate([latent, jnp.ones(1)])
