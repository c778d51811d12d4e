"""The LSTM over whole sequences on GPUs, with a derivative written by hand."""

import functools as ft

import jax
import jax.numpy as jnp

from splagger.nn.cells import LSTMWeights, lstm_cell, lstm_gates
from splagger.nn.gpu.number_types import MatmulTypes, matmul, matmul_types
from splagger.nn.gpu.recurrence import affine_gradients, arguments_again, empty_if, in_rows
from splagger.nn.scan import over_axes, scan_in_place


def unroll(weights: LSTMWeights, state, xs, resets):
    """Returns (last state, all hidden states [T, *batch, H])."""
    hs, c = in_rows(ft.partial(recur, matmul_types(), weights), state, xs, resets)
    return (hs[-1], c), hs


@ft.partial(jax.custom_vjp, nondiff_argnums=(0,))
def recur(types: MatmulTypes, weights: LSTMWeights, state, xs, resets):
    """Returns (all h [T, N, H], last c [N, H]) given inputs [T, N, D]."""
    return _recur_forward(types, weights, state, xs, resets)[0]


def _recur_forward(types, weights, state, xs, resets):
    inputs = matmul(xs, weights.input_weight.T, types.forward)
    weight = weights.hidden_weight.T.astype(types.forward)
    cell = jax.vmap(ft.partial(lstm_cell, weights))

    def one(state, x):
        inputs, reset = x
        h, c = empty_if(reset[:, None], state)
        state = cell(inputs, matmul(h, weight, types.forward), c)
        return state, state

    buffer = jax.tree.map(lambda s: jnp.zeros((len(resets), *s.shape)), state)
    (_, c), states = scan_in_place(one, state, (inputs, resets), buffer)
    return (states[0], c), (weights, state, xs, resets, states)


def _recur_backward(types, residuals, d_outputs):
    """Loops backward with carries dh and dc. All matmuls that do not depend on them run once for all steps.

    With slopes ∂i = g·i(1 - i), ∂f = cₜ₋₁·f(1 - f), ∂g = i(1 - g²), ∂o = tanh(c)·o(1 - o), known before the loop:
    dc += dh·o(1 - tanh²c);  dargₜ = [dc·∂i, dc·∂f, dc·∂g, dh·∂o];  dhₜ₋₁ = dargₜ U;  dcₜ₋₁ = dc·f.
    """
    weights, start, xs, resets, (hs, cs) = residuals
    d_hs, d_last_c = d_outputs
    h, c = (jnp.concatenate([s[None], ss[:-1]]) for s, ss in zip(start, (hs, cs), strict=True))
    h, c = empty_if(resets[..., None], (h, c))
    inputs = jnp.concatenate([h, xs], axis=-1)
    weight = jnp.concatenate([weights.hidden_weight, weights.input_weight], axis=1)
    back = weights.hidden_weight.astype(types.backward)

    def differentiate(arguments, c, new_c):
        """Returns (∂h'/∂c', f, [∂i; ∂f; ∂g; ∂o]) of one step."""
        i, f, g, o = lstm_gates(arguments.astype(jnp.float32) + weights.bias)
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

    d_xs = matmul(d_arguments, weights.input_weight, types.backward)
    d_weight, d_bias = affine_gradients(d_arguments, inputs, types)
    d_hidden, d_input = jnp.split(d_weight, [h.shape[-1]], axis=1)
    return LSTMWeights(d_input, d_hidden, d_bias), d_start, d_xs, None


recur.defvjp(_recur_forward, _recur_backward)
