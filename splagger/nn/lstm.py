"""The long short-term memory (LSTM), with a standard and a permutation-invariant initialization."""

import functools as ft
import math

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn.encoder import AbstractEncoder, Preparable
from splagger.nn.gpu.number_types import MatmulTypes, matmul, matmul_types, on_gpu
from splagger.nn.gpu.recurrence import (
    affine_gradients,
    arguments_again,
    empty_if,
    in_rows,
    with_rounded_weights,
)
from splagger.nn.initializers import orthogonal
from splagger.nn.scan import over_axes, scan_in_place, scan_unroll

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

    def start(self) -> LSTMState:
        zeros = jnp.zeros(self.hidden_weight.shape[1])
        return zeros, zeros

    def step(self, state: LSTMState, x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        """Returns (state, output) after one input; the output is h."""
        dtype, (h, c) = self.hidden_weight.dtype, empty_if(reset, state)
        inputs = matmul(x, self.input_weight.T, dtype)
        state = self._cell(inputs, matmul(h, self.hidden_weight.T, dtype), c)
        return state, state[0]

    def unroll(self, state: LSTMState, xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        """Returns (last state, all T outputs). One matmul before the loop handles all inputs."""
        return self.unroll_batch(state, xs, resets)

    def unroll_batch(self, state, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]):
        """Applies `unroll` to a batch of sequences."""
        return (_unroll_for_gpu if on_gpu() else _unroll)(self, state, xs, resets)

    def prepared(self) -> "LSTM":
        """Returns the same cell for many steps, with weights in the device's number type."""
        return with_rounded_weights(self)

    def _cell(self, inputs, hidden, c):
        """Returns (h', c'), given W x as `inputs` and U h as `hidden`."""
        i, f, g, o = _gates(inputs + hidden + self.bias)
        c = f * c + i * g
        return o * jnp.tanh(c), c


def _gates(arguments):
    """Returns the gates (i, f, g, o) of their stacked arguments."""
    i, f, g, o = jnp.split(arguments, 4)
    return jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)


def _unroll(lstm: LSTM, state, xs, resets):
    """Returns (last state, all hidden states [T, *batch, H]): the definition, differentiated by autodiff."""
    cell = over_axes(lstm._cell, resets.ndim - 1)

    def one(state, x):
        inputs, reset = x
        h, c = empty_if(reset[..., None], state)
        state = cell(inputs, h @ lstm.hidden_weight.T, c)
        return state, state[0]

    inputs = xs @ lstm.input_weight.T
    return jax.lax.scan(one, state, (inputs, resets), unroll=scan_unroll())


def _unroll_for_gpu(lstm: LSTM, state, xs, resets):
    """Returns the same as `_unroll`, with a derivative written by hand."""
    hs, c = in_rows(ft.partial(_recur, matmul_types(), lstm), state, xs, resets)
    return (hs[-1], c), hs


@ft.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _recur(types: MatmulTypes, lstm: LSTM, state, xs, resets):
    """Returns (all h [T, N, H], last c [N, H]) for inputs [T, N, D]."""
    return _recur_forward(types, lstm, state, xs, resets)[0]


def _recur_forward(types, lstm, state, xs, resets):
    inputs = matmul(xs, lstm.input_weight.T, types.forward)
    weight = lstm.hidden_weight.T.astype(types.forward)

    def one(state, x):
        inputs, reset = x
        h, c = empty_if(reset[:, None], state)
        state = jax.vmap(lstm._cell)(inputs, matmul(h, weight, types.forward), c)
        return state, state

    buffer = jax.tree.map(lambda s: jnp.zeros((len(resets), *s.shape)), state)
    (_, c), states = scan_in_place(one, state, (inputs, resets), buffer)
    return (states[0], c), (lstm, state, xs, resets, states)


def _recur_backward(types, residuals, d_outputs):
    """Loops backward with carries dh and dc. All matmuls that do not depend on them run once for all steps.

    With slopes ∂i = g·i(1 - i), ∂f = cₜ₋₁·f(1 - f), ∂g = i(1 - g²), ∂o = tanh(c)·o(1 - o), known before the loop:
    dc += dh·o(1 - tanh²c);  dargₜ = [dc·∂i, dc·∂f, dc·∂g, dh·∂o];  dhₜ₋₁ = dargₜ U;  dcₜ₋₁ = dc·f.
    """
    lstm, start, xs, resets, (hs, cs) = residuals
    d_hs, d_last_c = d_outputs
    h, c = (jnp.concatenate([s[None], ss[:-1]]) for s, ss in zip(start, (hs, cs), strict=True))
    h, c = empty_if(resets[..., None], (h, c))
    inputs = jnp.concatenate([h, xs], axis=-1)
    weight = jnp.concatenate([lstm.hidden_weight, lstm.input_weight], axis=1)
    back = lstm.hidden_weight.astype(types.backward)

    def differentiate(arguments, c, new_c):
        """Returns (∂h'/∂c', f, [∂i; ∂f; ∂g; ∂o]) of one step."""
        i, f, g, o = _gates(arguments.astype(jnp.float32) + lstm.bias)
        out = jnp.tanh(new_c)
        slopes = g * i * (1 - i), c * f * (1 - f), i * (1 - g * g), out * o * (1 - o)
        return o * (1 - out * out), f, jnp.concatenate(slopes)

    by_c, fs, slopes = over_axes(differentiate, 2)(arguments_again(inputs, weight, types), c, cs)

    def one(carry, x):
        (d_h, d_c), (d_out, by_c, f, slope, reset) = carry, x
        d_h = d_h + d_out
        d_c = d_c + d_h * by_c
        d_arguments = (jnp.concatenate([d_c, d_c, d_c, d_h], axis=-1) * slope).astype(back.dtype)
        before = matmul(d_arguments, back, back.dtype), d_c * f
        return empty_if(reset[:, None], before), d_arguments

    per_step = d_hs, by_c, fs, slopes, resets
    carry, buffer = (jnp.zeros_like(d_last_c), d_last_c), jnp.zeros(slopes.shape, back.dtype)
    d_start, d_arguments = scan_in_place(one, carry, per_step, buffer, reverse=True)

    d_xs = matmul(d_arguments, lstm.input_weight, types.backward)
    d_weight, d_bias = affine_gradients(d_arguments, inputs, types)
    d_hidden, d_input = jnp.split(d_weight, [h.shape[-1]], axis=1)
    return LSTM(d_input, d_hidden, d_bias), d_start, d_xs, None


_recur.defvjp(_recur_forward, _recur_backward)
