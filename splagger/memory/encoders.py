"""The table of encoders, and the encoders without a state.

The recurrent encoders and the Transformer are in `splagger.nn`.
"""

from collections.abc import Callable

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.nn import GRU, LRU, LSTM, MLSTM, AbstractEncoder, Linear, MinGRU, Transformer
from splagger.nn.scan import over_axes


class Pointwise(AbstractEncoder):
    """eₜ = tanh(W xₜ + b). Each step is encoded independently, so that an aggregate ignores the order.

    >>> pointwise = Pointwise.create(jr.key(0), 5, 8)
    >>> pointwise.unroll(pointwise.start(), jnp.ones((7, 5)), jnp.zeros(7, bool))[1].shape
    (7, 8)
    """

    linear: Linear

    @classmethod
    def create(cls, key: Key[Array, ""], inputs: int, width: int) -> "Pointwise":
        return cls(Linear.create(key, inputs, width))

    @property
    def input_size(self) -> int:
        return self.linear.weight.shape[1]

    def start(self) -> tuple[()]:
        return ()

    def step(self, state: tuple[()], x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        return state, jnp.tanh(self.linear(x))

    def unroll(self, state: tuple[()], xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        return self.unroll_batch(state, xs, resets)

    def unroll_batch(
        self, state: tuple[()], xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]
    ):
        return state, jnp.tanh(over_axes(self.linear, resets.ndim)(xs))


class Constant(AbstractEncoder):
    """eₜ = e for any input. An agent with this encoder acts on the current observation only."""

    value: Float[Array, " width"]

    @classmethod
    def create(cls, key: Key[Array, ""], width: int) -> "Constant":
        return cls(jr.uniform(key, (width,), minval=-1.0, maxval=1.0))

    @property
    def input_size(self) -> int:
        return 0

    def start(self) -> tuple[()]:
        return ()

    def step(self, state: tuple[()], x: Float[Array, " 0"], reset: Bool[Array, ""] | bool):
        return state, jnp.asarray(self.value)

    def unroll(self, state: tuple[()], xs: Float[Array, "T 0"], resets: Bool[Array, " T"]):
        return state, jnp.broadcast_to(self.value, (xs.shape[0], self.value.shape[0]))


class Projected(AbstractEncoder):
    """An encoder followed by a linear layer at every step (PEARL's bottleneck)."""

    inner: AbstractEncoder
    linear: Linear

    @property
    def input_size(self) -> int:
        return self.inner.input_size

    def start(self):
        return self.inner.start()

    def step(self, state, x: Float[Array, " D"], reset: Bool[Array, ""] | bool):
        state, e = self.inner.step(state, x, reset)
        return state, self.linear(e)

    def unroll(self, state, xs: Float[Array, "T D"], resets: Bool[Array, " T"]):
        return self.unroll_batch(state, xs, resets)

    def unroll_batch(self, state, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]):
        state, es = self.inner.unroll_batch(state, xs, resets)
        return state, over_axes(self.linear, resets.ndim)(es)


Build = Callable[[Key[Array, ""], int, int, int], AbstractEncoder]

# name → build(key, inputs, width, context); only the Transformer uses the context
ENCODERS: dict[str, Build] = {
    "constant": lambda key, inputs, width, context: Constant.create(key, width),
    "pointwise": lambda key, inputs, width, context: Pointwise.create(key, inputs, width),
    "gru": lambda key, inputs, width, context: GRU.create(key, inputs, width),
    "lstm": lambda key, inputs, width, context: LSTM.create(key, inputs, width),
    "lstm-invariant": lambda key, inputs, width, context: LSTM.create_invariant(key, inputs, width),
    "transformer": Transformer.create,
    "mingru": lambda key, inputs, width, context: MinGRU.create(key, inputs, width),
    "lru": lambda key, inputs, width, context: LRU.create(key, inputs, width),
    "mlstm": lambda key, inputs, width, context: MLSTM.create(key, inputs, width),
}
