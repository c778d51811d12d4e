"""The gated recurrent unit, and its whole-sequence form with a derivative written for GPUs."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key, Shaped

from splagger.nn.init import orthogonal
from splagger.nn.precision import MatmulTypes, matmul, matmul_types
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
        dtype, h = matmul_types().forward, _empty_if(reset, state)
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
        hs = (_unroll_for_gpu if _on_gpu() else _unroll)(self, state, xs, resets)
        return hs[-1], hs

    def prepared(self) -> "GRU | JoinedGRU":
        """The same function for many steps: on a GPU, one matmul a step instead of two."""
        if not _on_gpu():
            return self
        weight, bias = self.joined()
        return JoinedGRU(weight.T.astype(matmul_types().forward), bias)

    def joined(self) -> tuple[Float[Array, "H4 HD"], Float[Array, " H4"]]:
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


class JoinedGRU(eqx.Module):
    """A GRU for acting: its two matmuls as one, in the device's number type."""

    weight: Shaped[Array, "HD H4"]
    bias: Float[Array, " H4"]

    @property
    def input_size(self) -> int:
        return self.weight.shape[0] - self.bias.shape[0] // 4

    def start(self) -> Float[Array, " H"]:
        return jnp.zeros(self.bias.shape[0] // 4)

    def step(self, state: Float[Array, " H"], x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        h = _empty_if(reset, state)
        arguments = matmul(jnp.concatenate([h, x]), self.weight, self.weight.dtype) + self.bias
        _, z, n = _gates(*jnp.split(arguments, 4))
        new = n + z * (h - n)
        return new, new


def _on_gpu() -> bool:
    return jax.default_backend() != "cpu"


def _empty_if(reset, h):
    return jnp.where(reset, jnp.zeros_like(h), h)


def _gates(q, r, z, n):
    """The gates (r, z, n) of their arguments, q being what r lets through."""
    r = jax.nn.sigmoid(r)
    return r, jax.nn.sigmoid(z), jnp.tanh(n + r * q)


def _unroll(gru: GRU, state, xs, resets):
    """All hidden states [T, *batch, H]: the definition, for autodiff."""
    cell = over_axes(gru._cell, resets.ndim - 1)

    def one(h, x):
        inputs, reset = x
        h = _empty_if(reset[..., None], h)
        h = cell(inputs, h @ gru.hidden_weight.T, h)
        return h, h

    inputs = xs @ gru.input_weight.T
    return jax.lax.scan(one, state, (inputs, resets), unroll=scan_unroll())[1]


def _unroll_for_gpu(gru: GRU, state, xs, resets):
    """The same as `_unroll`."""
    return _recur(matmul_types(), gru, state, xs, resets)


@ft.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _recur(types: MatmulTypes, gru: GRU, state, xs, resets):
    cell = over_axes(gru._cell, resets.ndim - 1)
    weight = gru.hidden_weight.T.astype(types.forward)

    def one(h, x):
        inputs, reset = x
        h = _empty_if(reset[..., None], h)
        h = cell(inputs, matmul(h, weight, types.forward), h)
        return h, h

    inputs = matmul(xs, gru.input_weight.T, types.forward)
    hs = jnp.zeros((*resets.shape, state.shape[-1]))
    return scan_in_place(one, state, (inputs, resets), hs)[1]


def _recur_forward(types, gru, state, xs, resets):
    hs = _recur(types, gru, state, xs, resets)
    return hs, (gru, state, xs, resets, hs)


def _recur_backward(types, residuals, d_hs):
    """One backward loop that only carries dh; all else is done for the whole sequence at once.

    The gates are computed again from the states, so that neither loop has anything to store but its own h
    or dh. With the slopes of the gates known before the loop, a step is a product and a matmul:

        dhₜ₋₁ = dhₜ·z + [dhₜ·∂q, dhₜ·∂r, dhₜ·∂z] [Uₙ; Uᵣ; U_z]
    """
    gru, state, xs, resets, hs = residuals
    width, axes = state.shape[-1], resets.ndim
    before = _empty_if(resets[..., None], jnp.concatenate([state[None], hs[:-1]]))
    seen = jnp.concatenate([before, xs], axis=-1)
    weight, bias = gru.joined()
    arguments = jnp.matmul(seen.astype(types.forward), weight.T.astype(types.forward))

    def slopes(arguments, h):
        """(z, [∂q; ∂r; ∂z; ∂n]) of one step."""
        q, r, z, n = jnp.split(arguments.astype(jnp.float32) + bias, 4)
        r, z, n = _gates(q, r, z, n)
        d_n = (1 - z) * (1 - n * n)
        each = jnp.concatenate([d_n * r, d_n * q * r * (1 - r), (h - n) * z * (1 - z), d_n])
        return z, each.astype(types.forward)

    zs, slopes = over_axes(slopes, axes)(arguments, before)
    back = weight[: 3 * width, :width].astype(types.backward)

    def one(carry, x):
        d_h, z, slope, reset = x
        d_h = d_h + carry
        d_gates = jnp.concatenate([d_h] * 3, axis=-1) * slope[..., : 3 * width]
        return _empty_if(reset[..., None], d_h * z + matmul(d_gates, back, types.backward)), d_h

    xs_back = d_hs, zs, slopes, resets
    d_state, d_h = scan_in_place(one, jnp.zeros_like(state), xs_back, jnp.zeros_like(hs), True)

    d_arguments = (jnp.concatenate([d_h] * 4, axis=-1) * slopes).astype(types.backward)
    d_xs = matmul(d_arguments, weight[:, width:], types.backward)
    d_all = d_arguments.reshape(-1, 4 * width)
    d_weight = matmul(d_all.T, seen.reshape(len(d_all), -1), types.backward)
    d_bias = d_all.astype(jnp.float32).sum(0)
    d_gru = GRU(
        d_weight[width:, width:],
        jnp.concatenate([d_weight[width : 3 * width, :width], d_weight[:width, :width]]),
        d_bias[width:],
        d_bias[:width],
    )
    return d_gru, d_state, d_xs, None


_recur.defvjp(_recur_forward, _recur_backward)
