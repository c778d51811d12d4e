"""The matrix LSTM (mLSTM): fast weights with gates and a normalizer (Beck, Pöppel et al., 2024)."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn.encoder import AbstractEncoder
from splagger.nn.gpu.recurrence import empty_if
from splagger.nn.layers import Linear
from splagger.nn.scan import linear_recurrence, over_axes

HEADS, KEY_SIZE = 4, 8


class FastWeights(NamedTuple):
    """The state: per head a matrix C from keys to values, with the normalizer n as its last row."""

    matrix: Float[Array, "heads values keys"]


class MLSTM(AbstractEncoder):
    """A matrix LSTM: C' = f·C + i·v kᵀ;  n' = f·n + i·k;  h = o·C' q / max(|n'·q|, 1), for each head.

    Keys k, values v, queries q and the gates i, f, o = σ(·) depend on the input alone, so that a sequence is one
    associative scan. The published input gate is exponential and needs a stabilizer; a sigmoid does not. The state
    has `KEY_SIZE` numbers per neuron.

    >>> mlstm = MLSTM.create(jr.key(0), 5, 8)
    >>> state, output = mlstm.step(mlstm.start(), jnp.ones(5), reset=False)
    >>> mlstm.unroll(state, jnp.ones((7, 5)), jnp.zeros(7, bool))[1].shape
    (7, 8)
    """

    keys: Linear
    queries: Linear
    values: Linear
    input_gates: Linear
    forget_gates: Linear
    output_gates: Linear

    @classmethod
    def create(cls, key: Key[Array, ""], inputs: int, width: int) -> "MLSTM":
        """Builds an mLSTM. Forget gates start at σ(3) … σ(6), one per head, for every input."""
        keys = jr.split(key, 5)
        heads = math.gcd(width, HEADS)
        linear = lambda key, outputs: Linear.create(key, inputs, outputs)  # noqa: E731
        open_gates = jnp.linspace(3.0, 6.0, heads)
        return cls(
            linear(keys[0], heads * KEY_SIZE),
            linear(keys[1], heads * KEY_SIZE),
            linear(keys[2], width),
            linear(keys[3], heads),
            Linear(jnp.zeros((heads, inputs)), open_gates),
            linear(keys[4], width),
        )

    @property
    def input_size(self) -> int:
        return self.keys.weight.shape[1]

    @property
    def heads(self) -> int:
        return self.input_gates.bias.shape[0]

    def start(self) -> FastWeights:
        values = self.values.bias.shape[0] // self.heads
        return FastWeights(jnp.zeros((self.heads, values + 1, KEY_SIZE)))

    def step(self, state: FastWeights, x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        """Returns (state, output) after one input."""
        decay, new = self._decay_and_input(x)
        state = FastWeights(decay * empty_if(reset, state).matrix + new)
        return state, self._read(state.matrix, x)

    def unroll(self, state: FastWeights, xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        return self.unroll_batch(state, xs, resets)

    def unroll_batch(
        self, state: FastWeights, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]
    ):
        """Returns (last states, all T outputs) of a batch of sequences, by one associative scan."""
        decays, new = over_axes(self._decay_and_input, resets.ndim)(xs)
        matrices = linear_recurrence(decays, new, state.matrix, resets)
        outputs = over_axes(self._read, resets.ndim)(matrices, xs)
        return FastWeights(matrices[-1]), outputs

    def _decay_and_input(self, x: Float[Array, " D"]):
        """Returns f, [heads, 1, 1], and i·[v; 1] kᵀ, [heads, values + 1, keys]."""
        per_head = lambda y: y.reshape(self.heads, -1)  # noqa: E731
        keys, values = per_head(self.keys(x)) * KEY_SIZE**-0.5, per_head(self.values(x))
        gates = jax.nn.sigmoid(self.input_gates(x))
        decay = jax.nn.sigmoid(self.forget_gates(x))
        columns = jnp.concatenate([values, jnp.ones((self.heads, 1))], axis=1) * gates[:, None]
        return decay[:, None, None], columns[:, :, None] * keys[:, None, :]

    def _read(self, matrix: Float[Array, "heads values keys"], x: Float[Array, " D"]):
        """Returns o·C q / max(|n·q|, 1)."""
        queries = self.queries(x).reshape(self.heads, 1, KEY_SIZE)
        found = (matrix * queries).sum(-1)
        values, weight = found[:, :-1], found[:, -1:]
        mixed = values / jnp.maximum(jnp.abs(weight), 1.0)
        return jax.nn.sigmoid(self.output_gates(x)) * mixed.ravel()
