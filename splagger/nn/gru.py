"""The gated recurrent unit, and its whole-sequence form with a derivative written for GPUs."""

import functools as ft
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn import gru_cluster, gru_kernel
from splagger.nn.init import orthogonal
from splagger.nn.precision import HALF, MatmulTypes, matmul, matmul_types, on_gpu
from splagger.nn.recurrence import (
    affine_gradients,
    arguments_again,
    empty_if,
    in_rows,
    with_rounded_weights,
)
from splagger.nn.scan import over_axes, scan_in_place, scan_unroll


class GRU(eqx.Module):
    """r, z = σ(Wx + Uh + b);  n = tanh(Wx + b + r·(Uh + c));  h' = (1 - z)·n + z·h.

    A reset empties the state before the step is taken. `unroll` is the same function as repeated `step`.

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

    def start(self) -> Float[Array, " H"]:
        return jnp.zeros_like(self.candidate_bias)

    def step(self, state: Float[Array, " H"], x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        """(state, output) after one input; here both are h."""
        dtype, h = self.hidden_weight.dtype, empty_if(reset, state)
        inputs = matmul(x, self.input_weight.T, dtype)
        new = self._cell(inputs, matmul(h, self.hidden_weight.T, dtype), h)
        return new, new

    def unroll(self, state: Float[Array, " H"], xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        """(last state, all T outputs); the input matmul is one, before the loop."""
        return self.unroll_many(state, xs, resets)

    def unroll_many(
        self,
        state: Float[Array, "*batch H"],
        xs: Float[Array, "T *batch D"],
        resets: Bool[Array, "T *batch"],
    ):
        """`unroll` of many sequences side by side."""
        return (_unroll_for_gpu if on_gpu() else _unroll)(self, state, xs, resets)

    def prepared(self) -> "GRU":
        """The same for many steps, its weights in the device's number type."""
        return with_rounded_weights(self)

    def _joined(self) -> tuple[Float[Array, "H4 HD"], Float[Array, " H4"]]:
        """The affine map of [h; x] to the gates' arguments q = Uh + c, r, z = Wx + Uh + b, n = Wx + b."""
        width, inputs = self.candidate_bias.shape[0], self.input_size
        hidden, candidate = jnp.split(self.hidden_weight, [2 * width])
        from_h = jnp.concatenate([candidate, hidden, jnp.zeros((width, width))])
        from_x = jnp.concatenate([jnp.zeros((width, inputs)), self.input_weight])
        bias = jnp.concatenate([self.candidate_bias, self.bias])
        return jnp.concatenate([from_h, from_x], axis=1), bias

    def _cell(self, inputs, hidden, h):
        """h' of input gates W x and hidden gates U h."""
        from_h_r, from_h_z, q = jnp.split(hidden, 3)
        r, z, n = jnp.split(inputs + self.bias, 3)
        _, z, n = _gates(q + self.candidate_bias, r + from_h_r, z + from_h_z, n)
        return n + z * (h - n)


def _gates(q, r, z, n):
    """The gates (r, z, n) of their arguments, q being what r lets through."""
    r = jax.nn.sigmoid(r)
    return r, jax.nn.sigmoid(z), jnp.tanh(n + r * q)


def _unroll(gru: GRU, state, xs, resets):
    """(last state, all hidden states [T, *batch, H]): the definition, for autodiff."""
    cell = over_axes(gru._cell, resets.ndim - 1)

    def one(h, x):
        inputs, reset = x
        h = empty_if(reset[..., None], h)
        h = cell(inputs, h @ gru.hidden_weight.T, h)
        return h, h

    inputs = xs @ gru.input_weight.T
    return jax.lax.scan(one, state, (inputs, resets), unroll=scan_unroll())


def _unroll_for_gpu(gru: GRU, state, xs, resets):
    """The same as `_unroll`."""
    half, rows, width = matmul_types() == HALF, resets[0].size, state.shape[-1]
    sizes = resets.shape[0], rows, width, gru.input_size
    if half and gru_cluster.fits(*sizes) and gru_cluster.available():
        weights = gru.input_weight, gru.hidden_weight, gru.bias, gru.candidate_bias
        recur = ft.partial(gru_cluster.recur, *weights)
    else:
        kernels = half and gru_kernel.available() and gru_kernel.fits(rows, width)
        recur = ft.partial(_recur, Loops(matmul_types(), kernels, interpret=False), gru)
    hs = in_rows(recur, state, xs, resets)
    return hs[-1], hs


class Loops(NamedTuple):
    """How the loops over time are done: in which precision, and whether by our own kernels."""

    types: MatmulTypes
    kernels: bool
    interpret: bool


@ft.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _recur(loops: Loops, gru: GRU, state, xs, resets):
    """All hidden states [T, N, H] of inputs [T, N, D]."""
    return _recur_forward(loops, gru, state, xs, resets)[0]


def _recur_forward(loops, gru, state, xs, resets):
    dtype = loops.types.forward
    inputs = matmul(xs, gru.input_weight.T, dtype)
    weight = gru.hidden_weight.T.astype(dtype)
    if loops.kernels:
        _, bias = gru._joined()
        hs = gru_kernel.forward_loop(inputs, _keep(resets), weight, bias, state, loops.interpret)
    else:

        def one(h, x):
            inputs, reset = x
            h = empty_if(reset[:, None], h)
            h = jax.vmap(gru._cell)(inputs, matmul(h, weight, dtype), h)
            return h, h

        hs = scan_in_place(
            one, state, (inputs, resets), jnp.zeros((*resets.shape, len(gru.start())))
        )[1]
        hs = jnp.concatenate([state[None], hs])
    return hs[1:], (gru, xs, resets, hs)


def _recur_backward(loops, residuals, d_hs):
    """A loop backward that carries dh; every matmul that does not wait for it is done for all steps at once.

    The gates' arguments are computed again from the states, so that the loop forward has to store only these.
    """
    gru, xs, resets, hs = residuals
    types, width = loops.types, hs.shape[-1]
    weight, bias = gru._joined()
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
    d_gru = GRU(
        d_weight[width:, width:],
        jnp.concatenate([d_weight[width : 3 * width, :width], d_weight[:width, :width]]),
        d_bias[width:],
        d_bias[:width],
    )
    return d_gru, d_state, d_xs, None


def _backward_loop(arguments, resets, back, bias, before, d_hs):
    """dhₜ₋₁ = dhₜ·z + [dhₜ·∂q, dhₜ·∂r, dhₜ·∂z] [Uₙ; Uᵣ; U_z], the slopes known before the loop."""
    width = before.shape[-1]

    def differentiate(arguments, h):
        """(z, [∂q; ∂r; ∂z; ∂n]) of one step."""
        q, r, z, n = jnp.split(arguments.astype(jnp.float32) + bias, 4)
        r, z, n = _gates(q, r, z, n)
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


def _keep(resets):
    """1 where a step goes on with the state before it; after the last step nothing goes on."""
    return jnp.concatenate([~resets, jnp.zeros_like(resets[:1])]).astype(jnp.float32)


_recur.defvjp(_recur_forward, _recur_backward)
