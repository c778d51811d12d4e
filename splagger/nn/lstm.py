"""The long short-term memory (LSTM), with a standard and a permutation-invariant initialization."""

import functools as ft
import math

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn.cells import LSTMWeights, lstm_cell
from splagger.nn.encoder import AbstractEncoder, Preparable
from splagger.nn.gpu import lstm_loops
from splagger.nn.gpu.number_types import matmul, on_gpu
from splagger.nn.gpu.recurrence import empty_if, with_rounded_weights
from splagger.nn.initializers import orthogonal
from splagger.nn.scan import over_axes, scan_unroll

LSTMState = tuple[Float[Array, " H"], Float[Array, " H"]]


class LSTM(AbstractEncoder, Preparable):
    """A long short-term memory: i, f, o = σ(·);  c' = f·c + i·tanh(·);  h' = o·tanh(c').

    The gates are stacked in the order i, f, g, o.

    >>> lstm = LSTM.create(jr.key(0), 5, 8)
    >>> lstm.unroll(lstm.start(), jnp.ones((7, 5)), jnp.zeros(7, bool))[1].shape
    (7, 8)
    """

    input_weight: Float[Array, "H4 D"]
    hidden_weight: Float[Array, "H4 H"]
    bias: Float[Array, " H4"]

    @classmethod
    def create(cls, key: Key[Array, ""], inputs: int, width: int) -> "LSTM":
        input_key, hidden_key = jr.split(key)
        return cls(
            orthogonal(input_key, (4 * width, inputs)),
            orthogonal(hidden_key, (4 * width, width)),
            jnp.zeros(4 * width),
        )

    @classmethod
    def create_invariant(
        cls, key: Key[Array, ""], inputs: int, width: int, epsilon: float = 1e-4
    ) -> "LSTM":
        """Builds an LSTM that starts as a running sum: c ≈ Σ tanh(W x), for any order of the inputs.

        The input and forget gates are 1 - ε for every input, and nothing depends on h
        (the paper's appendix "LSTM Invariant Initialization").
        """
        lstm = cls.create(key, inputs, width)
        open_gate = math.log((1 - epsilon) / epsilon)
        return cls(
            lstm.input_weight.at[: 2 * width].set(0),
            jnp.zeros_like(lstm.hidden_weight),
            lstm.bias.at[: 2 * width].set(open_gate),
        )

    @property
    def input_size(self) -> int:
        return self.input_weight.shape[1]

    @property
    def weights(self) -> LSTMWeights:
        """The arrays as a tuple."""
        return LSTMWeights(self.input_weight, self.hidden_weight, self.bias)

    def start(self) -> LSTMState:
        zeros = jnp.zeros(self.hidden_weight.shape[1])
        return zeros, zeros

    def step(self, state: LSTMState, x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        """Returns (state, output) after one input; the output is h."""
        dtype, (h, c) = self.hidden_weight.dtype, empty_if(reset, state)
        inputs = matmul(x, self.input_weight.T, dtype)
        state = lstm_cell(self.weights, inputs, matmul(h, self.hidden_weight.T, dtype), c)
        return state, state[0]

    def unroll(self, state: LSTMState, xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        """Returns (last state, all T outputs). One matmul before the loop handles all inputs."""
        return self.unroll_batch(state, xs, resets)

    def unroll_batch(self, state, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]):
        """Applies `unroll` to a batch of sequences."""
        return (lstm_loops.unroll if on_gpu() else _unroll)(self.weights, state, xs, resets)

    def prepared(self) -> "LSTM":
        """Returns the same cell for many steps, with weights in the device's number type."""
        return with_rounded_weights(self)


def _unroll(weights: LSTMWeights, state, xs, resets):
    """Returns (last state, all hidden states [T, *batch, H]): the definition, differentiated by autodiff."""
    cell = over_axes(ft.partial(lstm_cell, weights), resets.ndim - 1)

    def one(state, x):
        inputs, reset = x
        h, c = empty_if(reset[..., None], state)
        state = cell(inputs, h @ weights.hidden_weight.T, c)
        return state, state[0]

    inputs = xs @ weights.input_weight.T
    return jax.lax.scan(one, state, (inputs, resets), unroll=scan_unroll())
