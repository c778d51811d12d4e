"""Layers whose leaves are all arrays, so that plain jit, vmap, grad and optax apply."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from splagger.nn.encoder import Preparable
from splagger.nn.gpu.number_types import LARGE, layer_product, matmul_types, rounded
from splagger.nn.initializers import uniform_fan_in


class Linear(Preparable):
    """The affine map W x + b.

    >>> Linear.create(jr.key(0), 3, 2)(jnp.ones(3)).shape
    (2,)
    """

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"]

    @classmethod
    def create(cls, key: Key[Array, ""], inputs: int, outputs: int) -> "Linear":
        weight_key, bias_key = jr.split(key)
        weight = uniform_fan_in(weight_key, (outputs, inputs), inputs)
        return cls(weight, uniform_fan_in(bias_key, (outputs,), inputs))

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        return layer_product(x, self.weight) + self.bias

    def prepared(self) -> "Linear":
        """Returns the same layer for many calls, with a large weight in the device's number type."""
        dtype = matmul_types().forward if self.weight.shape[1] >= LARGE else self.weight.dtype
        return eqx.tree_at(lambda layer: layer.weight, self, rounded(self.weight, dtype))


class Identity(eqx.Module):
    """The identity map, for models without a layer in its position."""

    def __call__(self, x):
        return x


class MLP(eqx.Module):
    """A multilayer perceptron, with an activation after every layer but the last."""

    layers: tuple[Callable, ...]
    activation: Callable = eqx.field(static=True, default=jnp.tanh)

    @classmethod
    def create(cls, key: Key[Array, ""], sizes: tuple[int, ...], activation=jnp.tanh) -> "MLP":
        keys = jr.split(key, len(sizes) - 1)
        pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
        return cls(tuple(Linear.create(k, i, o) for k, i, o in pairs), activation)

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        *hidden, last = self.layers
        for layer in hidden:
            x = self.activation(layer(x))
        return last(x)


class LayerNorm(eqx.Module):
    """Layer normalization: (x - mean) / √(variance + 1e-5), scaled and shifted."""

    scale: Float[Array, " n"]
    offset: Float[Array, " n"]

    @classmethod
    def create(cls, size: int) -> "LayerNorm":
        return cls(jnp.ones(size), jnp.zeros(size))

    def __call__(self, x: Float[Array, " n"]) -> Float[Array, " n"]:
        centered = x - x.mean()
        return (
            self.scale * centered * jax.lax.rsqrt(jnp.square(centered).mean() + 1e-5) + self.offset
        )
