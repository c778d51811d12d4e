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
    repeated `step`, at less than the cost of differentiating through the loop.

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
        new = _cell(self.input_weight @ x, self._recurrent, _empty_if(reset, state))[0]
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
    return 1 if jax.default_backend() == "cpu" else 8


def _empty_if(reset, h):
    return jnp.where(reset, jnp.zeros_like(h), h)


def _cell(gates, recurrent, h):
    """The next h, and what its derivative needs: (h, r, z, n, q)."""
    hidden_weight, bias, candidate_bias = recurrent
    width = h.shape[0]
    gates, hidden = gates + bias, hidden_weight @ h
    r = jax.nn.sigmoid(gates[:width] + hidden[:width])
    z = jax.nn.sigmoid(gates[width : 2 * width] + hidden[width : 2 * width])
    q = hidden[2 * width :] + candidate_bias
    n = jnp.tanh(gates[2 * width :] + r * q)
    return n + z * (h - n), (h, r, z, n, q)


@jax.custom_vjp
def _recur(gates, recurrent, state, resets):
    """All hidden states [T, H] of a sequence of input gates W x [T, 3H]."""
    return _recur_forward(gates, recurrent, state, resets)[0]


def _recur_forward(gates, recurrent, state, resets):
    def one(h, x):
        gate, reset = x
        new, saved = _cell(gate, recurrent, _empty_if(reset, h))
        return new, (new, saved)

    _, (hs, saved) = jax.lax.scan(one, state, (gates, resets), unroll=scan_unroll())
    return hs, (recurrent[0], resets, saved)


def _recur_backward(residuals, d_hs):
    """One backward loop carries dh; the gradients of the weights are matmuls after it."""
    hidden_weight, resets, saved = residuals

    def one(carry, x):
        d_h, reset, (h, r, z, n, q) = x
        d_h = d_h + carry
        d_n = d_h * (1 - z) * (1 - n * n)
        d_z = d_h * (h - n) * z * (1 - z)
        d_r = d_n * q * r * (1 - r)
        d_q = d_n * r
        d_carry = d_h * z + jnp.concatenate([d_r, d_z, d_q]) @ hidden_weight
        return _empty_if(reset, d_carry), (jnp.concatenate([d_r, d_z, d_n]), d_q)

    d_state, (d_gates, d_q) = jax.lax.scan(
        one, jnp.zeros_like(d_hs[0]), (d_hs, resets, saved), reverse=True, unroll=scan_unroll()
    )
    h, width = saved[0], d_hs.shape[1]
    d_weight = jnp.concatenate([d_gates[:, : 2 * width].T @ h, d_q.T @ h])
    return d_gates, (d_weight, d_gates.sum(0), d_q.sum(0)), d_state, None


_recur.defvjp(_recur_forward, _recur_backward)
