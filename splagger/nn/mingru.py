"""The minimal gated recurrent unit (minGRU), whose gates do not depend on its state (Feng et al., 2024)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from splagger.nn.encoder import AbstractEncoder
from splagger.nn.gpu.recurrence import empty_if
from splagger.nn.initializers import orthogonal
from splagger.nn.layers import Linear
from splagger.nn.scan import linear_recurrence, over_axes


class MinGRU(AbstractEncoder):
    """A minimal gated recurrent unit: z = σ(W x + b);  c = V x + d;  h' = (1 - z)·h + z·c.

    Gate and candidate depend on the input alone, so that h is linear in its past and a sequence is one
    associative scan. `gates` stacks W and V.

    >>> mingru = MinGRU.create(jax.random.key(0), 5, 8)
    >>> state, output = mingru.step(mingru.start(), jnp.ones(5), reset=False)
    >>> mingru.unroll(state, jnp.ones((7, 5)), jnp.zeros(7, bool))[1].shape
    (7, 8)
    """

    gates: Linear

    @classmethod
    def create(cls, key: Key[Array, ""], inputs: int, width: int) -> "MinGRU":
        return cls(Linear(orthogonal(key, (2 * width, inputs)), jnp.zeros(2 * width)))

    @property
    def input_size(self) -> int:
        return self.gates.weight.shape[1]

    def start(self) -> Float[Array, " H"]:
        return jnp.zeros(self.gates.bias.shape[0] // 2)

    def step(self, state: Float[Array, " H"], x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        """Returns (state, output) after one input; both are h."""
        decay, new = self._decay_and_input(x)
        state = decay * empty_if(reset, state) + new
        return state, state

    def unroll(self, state: Float[Array, " H"], xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        return self.unroll_batch(state, xs, resets)

    def unroll_batch(
        self,
        state: Float[Array, "*batch H"],
        xs: Float[Array, "T *batch D"],
        resets: Bool[Array, "T *batch"],
    ):
        """Returns (last states, all T outputs) of a batch of sequences."""
        decays, new = over_axes(self._decay_and_input, resets.ndim)(xs)
        states = linear_recurrence(decays, new, state, resets)
        return states[-1], states

    def _decay_and_input(self, x: Float[Array, " D"]):
        """Returns 1 - z and z·c."""
        z, candidate = jnp.split(self.gates(x), 2)
        return jax.nn.sigmoid(-z), jax.nn.sigmoid(z) * candidate
