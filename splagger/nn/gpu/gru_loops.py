"""The GRU over whole sequences on GPUs, with a derivative written by hand."""

import functools as ft
from typing import NamedTuple

import jax
import jax.numpy as jnp

from splagger.nn.cells import GRUWeights, gru_cell, gru_gates
from splagger.nn.gpu import cuda, gru_hopper, gru_kernel
from splagger.nn.gpu.number_types import HALF, MatmulTypes, matmul, matmul_types
from splagger.nn.gpu.recurrence import affine_gradients, arguments_again, empty_if, in_rows
from splagger.nn.scan import over_axes, scan_in_place


class Loops(NamedTuple):
    """How the loops over time run: the number types of matmuls, and whether Triton kernels do the steps."""

    types: MatmulTypes
    kernels: bool
    interpret: bool


def unroll(weights: GRUWeights, state, xs, resets):
    """Returns (last state, all hidden states [T, *batch, H])."""
    hs = in_rows(ft.partial(_choose(weights, resets), weights), state, xs, resets)
    return hs[-1], hs


def _choose(weights, resets):
    """Returns the fastest implementation on this device for sequences of this size."""
    half, steps, rows = matmul_types() == HALF, len(resets), resets[0].size
    width, inputs = weights.hidden_weight.shape[1], weights.input_weight.shape[1]
    hopper = half and cuda.enabled() and gru_hopper.fits(steps, rows, width, inputs)
    if hopper and gru_hopper.available():
        return gru_hopper.recur
    kernels = half and gru_kernel.available() and gru_kernel.fits(rows, width)
    return ft.partial(recur, Loops(matmul_types(), kernels, interpret=False))


@ft.partial(jax.custom_vjp, nondiff_argnums=(0,))
def recur(loops: Loops, weights: GRUWeights, state, xs, resets):
    """Returns all hidden states [T, N, H], given inputs [T, N, D]."""
    return _recur_forward(loops, weights, state, xs, resets)[0]


def _recur_forward(loops, weights, state, xs, resets):
    dtype = loops.types.forward
    inputs = matmul(xs, weights.input_weight.T, dtype)
    weight = weights.hidden_weight.T.astype(dtype)
    if loops.kernels:
        _, bias = _joined(weights)
        hs = gru_kernel.forward_loop(inputs, _keep(resets), weight, bias, state, loops.interpret)
    else:
        cell = jax.vmap(ft.partial(gru_cell, weights))

        def one(h, x):
            inputs, reset = x
            h = empty_if(reset[:, None], h)
            h = cell(inputs, matmul(h, weight, dtype), h)
            return h, h

        buffer = jnp.zeros((*resets.shape, len(weights.candidate_bias)))
        hs = scan_in_place(one, state, (inputs, resets), buffer)[1]
        hs = jnp.concatenate([state[None], hs])
    return hs[1:], (weights, xs, resets, hs)


def _recur_backward(loops, residuals, d_hs):
    """Loops backward with the carry dh. All matmuls that do not depend on it run once for all steps.

    The gates' arguments are recomputed from the states, so that the forward loop stores only the states.
    """
    weights, xs, resets, hs = residuals
    types, width = loops.types, hs.shape[-1]
    weight, bias = _joined(weights)
    before = empty_if(resets[..., None], hs[:-1])
    seen = jnp.concatenate([before, xs], axis=-1)
    arguments = arguments_again(seen, weight, types)
    back = weight[: 3 * width, :width].astype(types.backward)
    if loops.kernels:
        keep = _keep(resets)
        d_arguments, d_state = gru_kernel.backward_loop(
            arguments, keep, back, bias, hs, d_hs, loops.interpret
        )
    else:
        d_arguments, d_state = _backward_loop(arguments, resets, back, bias, before, d_hs)

    d_xs = matmul(d_arguments, weight[:, width:], types.backward)
    d_weight, d_bias = affine_gradients(d_arguments, seen, types)
    d_weights = GRUWeights(
        d_weight[width:, width:],
        jnp.concatenate([d_weight[width : 3 * width, :width], d_weight[:width, :width]]),
        d_bias[width:],
        d_bias[:width],
    )
    return d_weights, d_state, d_xs, None


recur.defvjp(_recur_forward, _recur_backward)


def _backward_loop(arguments, resets, back, bias, before, d_hs):
    """Computes dhₜ₋₁ = dhₜ·z + [dhₜ·∂q, dhₜ·∂r, dhₜ·∂z] [Uₙ; Uᵣ; U_z], with the slopes known before the loop."""
    width = before.shape[-1]

    def differentiate(arguments, h):
        """Returns (z, [∂q; ∂r; ∂z; ∂n]) of one step."""
        q, r, z, n = jnp.split(arguments.astype(jnp.float32) + bias, 4)
        r, z, n = gru_gates(q, r, z, n)
        d_n = (1 - z) * (1 - n * n)
        each = jnp.concatenate([d_n * r, d_n * q * r * (1 - r), (h - n) * z * (1 - z), d_n])
        return z, each.astype(arguments.dtype)

    zs, slopes = over_axes(differentiate, 2)(arguments, before)

    def one(carry, x):
        d_h, z, slope, reset = x
        d_h = d_h + carry
        d_gates = jnp.concatenate([d_h] * 3, axis=-1) * slope[:, : 3 * width]
        return empty_if(reset[:, None], d_h * z + matmul(d_gates, back, back.dtype)), d_h

    xs = d_hs, zs, slopes, resets
    d_state, d_h = scan_in_place(one, jnp.zeros_like(before[0]), xs, jnp.zeros_like(d_hs), True)
    return (jnp.concatenate([d_h] * 4, axis=-1) * slopes).astype(back.dtype), d_state


def _joined(weights: GRUWeights):
    """Returns the affine map (weight [4H, H + D], bias [4H]) from [h; x] to the gates' arguments.

    These are q = Uh + c;  r, z = Wx + Uh + b;  n = Wx + b.
    """
    width, inputs = len(weights.candidate_bias), weights.input_weight.shape[1]
    hidden, candidate = jnp.split(weights.hidden_weight, [2 * width])
    from_h = jnp.concatenate([candidate, hidden, jnp.zeros((width, width))])
    from_x = jnp.concatenate([jnp.zeros((width, inputs)), weights.input_weight])
    bias = jnp.concatenate([weights.candidate_bias, weights.bias])
    return jnp.concatenate([from_h, from_x], axis=1), bias


def _keep(resets):
    """Returns 1 where a step continues from the previous state, with a final 0 after the last step."""
    return jnp.concatenate([~resets, jnp.zeros_like(resets[:1])]).astype(jnp.float32)
