"""The gated recurrent unit (GRU)."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn.cells import GRUWeights, gru_cell
from splagger.nn.encoder import AbstractEncoder, Preparable
from splagger.nn.gpu import cuda, gru_hopper, gru_loops
from splagger.nn.gpu.number_types import HALF, matmul, matmul_types, on_gpu
from splagger.nn.gpu.recurrence import empty_if, with_rounded_weights
from splagger.nn.initializers import orthogonal
from splagger.nn.scan import over_axes, scan_unroll


class GRU(AbstractEncoder, Preparable):
    """A gated recurrent unit: r, z = σ(Wx + Uh + b);  n = tanh(Wx + b + r·(Uh + c));  h' = (1 - z)·n + z·h.

    The gates are stacked in the order r, z, n.

    >>> gru = GRU.create(jr.key(0), 5, 8)
    >>> state, output = gru.step(gru.start(), jnp.ones(5), reset=False)
    >>> state, outputs = gru.unroll(state, jnp.ones((7, 5)), jnp.zeros(7, bool))
    >>> outputs.shape
    (7, 8)
    """

    input_weight: Float[Array, "H3 D"]
    hidden_weight: Float[Array, "H3 H"]
    bias: Float[Array, " H3"]
    candidate_bias: Float[Array, " H"]

    @classmethod
    def create(cls, key: Key[Array, ""], inputs: int, width: int) -> "GRU":
        input_key, hidden_key = jr.split(key)
        return cls(
            orthogonal(input_key, (3 * width, inputs)),
            orthogonal(hidden_key, (3 * width, width)),
            jnp.zeros(3 * width),
            jnp.zeros(width),
        )

    @property
    def input_size(self) -> int:
        return self.input_weight.shape[1]

    @property
    def weights(self) -> GRUWeights:
        """The arrays as a tuple."""
        return GRUWeights(self.input_weight, self.hidden_weight, self.bias, self.candidate_bias)

    def start(self) -> Float[Array, " H"]:
        return jnp.zeros_like(self.candidate_bias)

    def step(self, state: Float[Array, " H"], x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        """Returns (state, output) after one input; both are h."""
        dtype, h = self.hidden_weight.dtype, empty_if(reset, state)
        inputs = matmul(x, self.input_weight.T, dtype)
        new = gru_cell(self.weights, inputs, matmul(h, self.hidden_weight.T, dtype), h)
        return new, new

    def unroll(self, state: Float[Array, " H"], xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        """Returns (last state, all T outputs). One matmul before the loop handles all inputs."""
        return self.unroll_batch(state, xs, resets)

    def unroll_batch(
        self,
        state: Float[Array, "*batch H"],
        xs: Float[Array, "T *batch D"],
        resets: Bool[Array, "T *batch"],
    ):
        """Applies `unroll` to a batch of sequences."""
        return (gru_loops.unroll if on_gpu() else _unroll)(self.weights, state, xs, resets)

    def prepared(self) -> "GRU":
        """Returns the same cell for many steps, with weights in the device's number type and layout."""
        ready = with_rounded_weights(self)
        width, inputs = self.candidate_bias.shape[0], self.input_size
        half = cuda.enabled() and matmul_types() == HALF
        if not (
            half and gru_hopper.fits(1, gru_hopper.ROWS, width, inputs) and gru_hopper.available()
        ):
            return ready
        return ActingGRU(*ready.weights, gru_hopper.Step.create(ready.weights))


class ActingGRU(GRU):
    """A GRU for acting on Hopper GPUs: one kernel computes a step of all environments."""

    one_step: gru_hopper.Step

    def step(self, state, x, reset):
        new = self.one_step(empty_if(reset, state), x)
        return new, new


def _unroll(weights: GRUWeights, state, xs, resets):
    """Returns (last state, all hidden states [T, *batch, H]): the definition, differentiated by autodiff."""
    cell = over_axes(ft.partial(gru_cell, weights), resets.ndim - 1)

    def one(h, x):
        inputs, reset = x
        h = empty_if(reset[..., None], h)
        h = cell(inputs, h @ weights.hidden_weight.T, h)
        return h, h

    inputs = xs @ weights.input_weight.T
    return jax.lax.scan(one, state, (inputs, resets), unroll=scan_unroll())
