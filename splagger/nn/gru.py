"""The gated recurrent unit, and its whole-sequence form with a hand-written derivative."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn.init import orthogonal


class GRU(eqx.Module):
    """r, z = σ(Wx + Uh + b);  n = tanh(Wx + b + r·(Uh + c));  h' = (1 - z)·n + z·h.

    A reset empties the state before the step is taken. `unroll` is the same function as
    repeated `step`; its derivative is written for GPUs, where it costs less than autodiff through the loop.

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
        new = _cell(self.input_weight @ x, self._recurrent, _empty_if(reset, state))
        return new, new

    def unroll(self, state: Float[Array, " H"], xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        """(last state, all T outputs); the input matmul is one, before the loop."""
        hs = _recur(xs @ self.input_weight.T, self._recurrent, state, resets)
        return hs[-1], hs

    @property
    def _recurrent(self):
        return self.hidden_weight, self.bias, self.candidate_bias


def scan_unroll() -> int:
    """Steps of a loop compiled as one: a GPU launches fewer kernels, a CPU only compiles longer."""
    return 1 if jax.default_backend() == "cpu" else 4


def _empty_if(reset, h):
    return jnp.where(reset, jnp.zeros_like(h), h)


def _gates(inputs, hidden, bias, candidate_bias):
    """(r, z, n, q) of input gates W x and hidden gates U h."""
    width = candidate_bias.shape[0]
    inputs = inputs + bias
    r, z = jnp.split(jax.nn.sigmoid(inputs[: 2 * width] + hidden[: 2 * width]), 2)
    q = hidden[2 * width :] + candidate_bias
    return r, z, jnp.tanh(inputs[2 * width :] + r * q), q


def _cell(inputs, recurrent, h):
    hidden_weight, *biases = recurrent
    _, z, n, _ = _gates(inputs, hidden_weight @ h, *biases)
    return n + z * (h - n)


@jax.custom_vjp
def _recur(inputs, recurrent, state, resets):
    """All hidden states [T, H] of a sequence of input gates W x [T, 3H]."""

    def one(h, x):
        gates, reset = x
        h = _cell(gates, recurrent, _empty_if(reset, h))
        return h, h

    return jax.lax.scan(one, state, (inputs, resets), unroll=scan_unroll())[1]


def _recur_forward(inputs, recurrent, state, resets):
    hs = _recur(inputs, recurrent, state, resets)
    return hs, (inputs, recurrent, state, resets, hs)


def _recur_backward(residuals, d_hs):
    """One backward loop that only carries dh; all else is done for the whole sequence at once.

    The gates are computed again from the states, so that neither loop has anything to store but its own h
    or dh. With the slopes of the gates known before the loop, a step is a product and a matmul:

        dhₜ₋₁ = dhₜ·z + [dhₜ·∂r, dhₜ·∂z, dhₜ·∂q] U
    """
    inputs, (hidden_weight, bias, candidate_bias), state, resets, hs = residuals
    keep = ~resets[:, None]
    before = jnp.concatenate([state[None], hs[:-1]]) * keep
    gates = jax.vmap(_gates, in_axes=(0, 0, None, None))
    r, z, n, q = gates(inputs, before @ hidden_weight.T, bias, candidate_bias)
    n_slope = (1 - z) * (1 - n * n)
    slopes = jnp.stack([n_slope * q * r * (1 - r), (before - n) * z * (1 - z), n_slope * r], axis=1)

    def one(carry, x):
        d_h, z, slopes = x
        d_h = d_h + carry
        return d_h * z + (d_h[None] * slopes).ravel() @ hidden_weight, d_h

    d_state, d_h = jax.lax.scan(
        one,
        jnp.zeros_like(state),
        (d_hs, z * keep, slopes * keep[:, :, None]),
        reverse=True,
        unroll=scan_unroll(),
    )
    d_gates = (d_h[:, None] * slopes).reshape(inputs.shape)
    d_q = d_gates[:, 2 * n.shape[1] :]
    d_inputs = jnp.concatenate([d_gates[:, : 2 * n.shape[1]], d_h * n_slope], axis=1)
    return d_inputs, (d_gates.T @ before, d_inputs.sum(0), d_q.sum(0)), d_state, None


_recur.defvjp(_recur_forward, _recur_backward)
