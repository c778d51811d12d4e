"""Encoders eₜ of a sequence: `start`, `step` and `unroll`, with `unroll` = repeated `step`.

An encoder that has a faster way for many sequences at once may have an `unroll_many` too.

The recurrent ones are `splagger.nn`'s GRU, LSTM and Transformer as they are; here are those that
have no state of their own, and the table of names.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn import GRU, LSTM, Linear, Transformer
from splagger.nn.scan import over_axes


class Pointwise(eqx.Module):
    """eₜ = tanh(W xₜ + b): sees one step at a time, so what aggregates it ignores order.

    >>> pointwise = Pointwise.create(jr.key(0), 5, 8)
    >>> pointwise.unroll(pointwise.start(), jnp.ones((7, 5)), jnp.zeros(7, bool))[1].shape
    (7, 8)
    """

    linear: Linear

    @classmethod
    def create(cls, key: Key[Array, ""], inputs: int, width: int) -> "Pointwise":
        return cls(Linear.create(key, inputs, width))

    @property
    def input_size(self) -> int:
        return self.linear.weight.shape[1]

    def start(self) -> tuple[()]:
        return ()

    def step(self, state: tuple[()], x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        return state, jnp.tanh(self.linear(x))

    def unroll(self, state: tuple[()], xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        return self.unroll_many(state, xs, resets)

    def unroll_many(
        self, state: tuple[()], xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]
    ):
        return state, jnp.tanh(over_axes(self.linear, resets.ndim)(xs))


class Constant(eqx.Module):
    """eₜ = e: sees nothing, remembers nothing. What is left of an agent is its policy of what it sees now."""

    value: Float[Array, " width"]

    @classmethod
    def create(cls, key: Key[Array, ""], width: int) -> "Constant":
        return cls(jr.uniform(key, (width,), minval=-1.0, maxval=1.0))

    @property
    def input_size(self) -> int:
        return 0

    def start(self) -> tuple[()]:
        return ()

    def step(self, state: tuple[()], x: Float[Array, " 0"], reset: Bool[Array, ""] | bool):
        return state, jnp.asarray(self.value)

    def unroll(self, state: tuple[()], xs: Float[Array, "T 0"], resets: Bool[Array, " T"]):
        return state, jnp.broadcast_to(self.value, (xs.shape[0], self.value.shape[0]))


class Projected(eqx.Module):
    """An encoder whose every output goes through one more linear layer (PEARL's bottleneck)."""

    inner: Any
    linear: Linear

    @property
    def input_size(self) -> int:
        return self.inner.input_size

    def start(self):
        return self.inner.start()

    def step(self, state, x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        state, e = self.inner.step(state, x, reset)
        return state, self.linear(e)

    def unroll(self, state, xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        return self.unroll_many(state, xs, resets)

    def unroll_many(self, state, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]):
        state, es = unroll_many(self.inner, state, xs, resets)
        return state, over_axes(self.linear, resets.ndim)(es)


def unroll_many(encoder, state, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]):
    """(last states, all outputs) of many sequences side by side, in the encoder's own way if it has one."""
    if hasattr(encoder, "unroll_many"):
        return encoder.unroll_many(state, xs, resets)
    unroll = encoder.unroll
    for _ in range(1, resets.ndim):
        unroll = jax.vmap(unroll, in_axes=(0, 1, 1), out_axes=(0, 1))
    return unroll(state, xs, resets)


Build = Callable[[Key[Array, ""], int, int, int], Any]

# name → build(key, inputs, width, context); only attention needs to know the longest context
ENCODERS: dict[str, Build] = {
    "constant": lambda key, inputs, width, context: Constant.create(key, width),
    "pointwise": lambda key, inputs, width, context: Pointwise.create(key, inputs, width),
    "gru": lambda key, inputs, width, context: GRU.create(key, inputs, width),
    "lstm": lambda key, inputs, width, context: LSTM.create(key, inputs, width),
    "lstm-invariant": lambda key, inputs, width, context: LSTM.create_invariant(key, inputs, width),
    "transformer": Transformer.create,
}
