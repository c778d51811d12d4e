"""The long short-term memory, with an ordinary and a permutation-invariant initialization."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn.init import orthogonal
from splagger.nn.scan import scan_unroll

LSTMState = tuple[Float[Array, " H"], Float[Array, " H"]]


class LSTM(eqx.Module):
    """i, f, o = σ(·);  c' = f·c + i·tanh(·);  h' = o·tanh(c').  Gates are stacked i, f, g, o.

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
        """Starts as a running sum: c ≈ Σ tanh(W x), whatever the order of the inputs.

        The input and forget gates are 1 - ε for every input, and nothing depends on h
        (appendix "LSTM Invariant Initialization").
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
        return self._advance(state, self.input_weight @ x, reset)

    def unroll(self, state: LSTMState, xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        gates = xs @ self.input_weight.T
        return jax.lax.scan(
            lambda s, x: self._advance(s, *x), state, (gates, resets), unroll=scan_unroll()
        )

    def _advance(self, state, gates, reset):
        h, c = jax.tree.map(lambda s: jnp.where(reset, jnp.zeros_like(s), s), state)
        i, f, g, o = jnp.split(gates + self.bias + self.hidden_weight @ h, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
