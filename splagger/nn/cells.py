"""One step of the recurrent cells, as pure functions of their weights: used by the classes and by their GPU loops."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class GRUWeights(NamedTuple):
    """The arrays of a GRU; the gates are stacked in the order r, z, n."""

    input_weight: Float[Array, "H3 D"]
    hidden_weight: Float[Array, "H3 H"]
    bias: Float[Array, " H3"]
    candidate_bias: Float[Array, " H"]


class LSTMWeights(NamedTuple):
    """The arrays of an LSTM; the gates are stacked in the order i, f, g, o."""

    input_weight: Float[Array, "H4 D"]
    hidden_weight: Float[Array, "H4 H"]
    bias: Float[Array, " H4"]


def gru_cell(weights: GRUWeights, inputs, hidden, h):
    """Returns h', given W x as `inputs` and U h as `hidden`."""
    from_h_r, from_h_z, q = jnp.split(hidden, 3)
    r, z, n = jnp.split(inputs + weights.bias, 3)
    _, z, n = gru_gates(q + weights.candidate_bias, r + from_h_r, z + from_h_z, n)
    return n + z * (h - n)


def gru_gates(q, r, z, n):
    """Returns the gates (r, z, n), given their arguments; q is the argument that r multiplies."""
    r = jax.nn.sigmoid(r)
    return r, jax.nn.sigmoid(z), jnp.tanh(n + r * q)


def lstm_cell(weights: LSTMWeights, inputs, hidden, c):
    """Returns (h', c'), given W x as `inputs` and U h as `hidden`."""
    i, f, g, o = lstm_gates(inputs + hidden + weights.bias)
    c = f * c + i * g
    return o * jnp.tanh(c), c


def lstm_gates(arguments):
    """Returns the gates (i, f, g, o), given their stacked arguments."""
    i, f, g, o = jnp.split(arguments, 4)
    return jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)
