"""The memory f(τ): embed, encode, aggregate, project."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.aggregators import AbstractAggregator, Max, check_parameters
from splagger.errors import SettingError
from splagger.memory.embedding import Nothing
from splagger.memory.encoders import ENCODERS, Projected
from splagger.memory.split import SplitAggregation
from splagger.nn import AbstractEncoder, Identity, Linear
from splagger.nn.scan import over_axes
from splagger.tables import lookup


class Memory(NamedTuple):
    """The state of a memory. Its size is constant; only a Transformer's depends on its context."""

    encoder: Any
    aggregate: Any
    output: Float[Array, " out"]


class SequenceModel(eqx.Module):
    """A memory for any JAX training loop: it takes inputs and returns outputs.

    `unroll` equals repeated `step`, with resets anywhere. A reset empties the memory *before* the step, so
    set it on the first step of a new task.

    >>> memory = SequenceModel.create(jr.key(0), input_size=6)
    >>> state = memory.start()
    >>> state, y = memory.step(state, jnp.ones(6), reset=False)
    >>> y.shape
    (24,)
    >>> state, ys = memory.unroll(state, jnp.ones((9, 6)), jnp.zeros(9, bool))
    >>> ys.shape
    (9, 24)
    """

    embedding: Callable
    encoder: AbstractEncoder
    aggregation: SplitAggregation
    projection: Linear | Identity

    @classmethod
    def create(
        cls,
        key: Key[Array, ""],
        input_size: int,
        encoder: str = "gru",
        width: int = 256,
        aggregator: AbstractAggregator | None = None,
        skip: float = 0.5,
        output_size: int = 24,
        bottleneck: bool = False,
        context: int = 1000,
        embedding: Callable | None = None,
    ) -> "SequenceModel":
        """Builds a memory; the defaults are SplAgger's.

        - `input_size`: the size of an embedded input.
        - `encoder`: a name in `ENCODERS`, with `width` neurons.
        - `aggregator`: the running maximum by default.
        - `skip`: the fraction of neurons that bypass the aggregator.
        - `bottleneck`: project to `output_size` before the aggregator instead of after it.
        - `context`: the number of steps that a Transformer can attend to.
        - `embedding`: maps each input to `input_size` numbers; the identity by default.
        """
        _check_sizes(input_size, width, skip, output_size)
        encoder_key, output_key = jr.split(key)
        core = lookup(ENCODERS, encoder, "encoder")(encoder_key, input_size, width, context)
        if bottleneck:
            core = Projected(core, Linear.create(output_key, width, output_size))
        size = output_size if bottleneck else width
        aggregation = SplitAggregation(_trainable(aggregator or Max()), size, int(size * skip))
        projection = (
            Identity()
            if bottleneck
            else Linear.create(output_key, aggregation.output_size, output_size)
        )
        embed = embedding or Identity()
        return cls(embed if core.input_size else Nothing(), core, aggregation, projection)

    @property
    def output_size(self) -> int:
        return jax.eval_shape(self.start).output.shape[0]

    def start(self, *batch: int) -> Memory:
        """Returns an empty memory, or a batch of them. Its output is that for one all-zero input, which is not kept.

        - `batch`: sizes of the batch axes, if any: `start(32)` for 32 sequences side by side.
        """
        encoder, aggregate = self.encoder.start(), self.aggregation.start()
        _, e = self.encoder.step(encoder, jnp.zeros(self.encoder.input_size), False)
        _, mixed = self.aggregation.step(aggregate, e, False)
        empty = Memory(encoder, aggregate, self.projection(mixed))
        if not batch:
            return empty
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*batch, *leaf.shape)), empty)

    def step(self, memory: Memory, inputs, reset: Bool[Array, ""] | bool):
        """Returns (memory, output) after one more input; `reset` empties the memory first.

        It takes one example; for a batch, use `jax.vmap(model.step)` or `unroll`.
        """
        x = self._embed(inputs)
        encoder, e = self.encoder.step(memory.encoder, x, reset)
        aggregate, mixed = self.aggregation.step(memory.aggregate, e, reset)
        output = self.projection(mixed)
        return Memory(encoder, aggregate, output), output

    def unroll(self, memory: Memory, inputs, resets):
        """Returns (last memory, all T outputs) of a sequence; leaves of `inputs` have a leading time axis T.

        Axes after T are batch axes, which `memory` must have too: `model.start(batch)` returns such a memory.
        """
        resets = jnp.asarray(resets)
        self._check_axes(memory, inputs, resets)
        return self.unroll_embedded(memory, over_axes(self._embed, resets.ndim)(inputs), resets)

    def unroll_embedded(
        self, memory: Memory, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]
    ):
        """Returns the same as `unroll`, for inputs that are already embedded."""
        encoder, es = self.encoder.unroll_batch(memory.encoder, xs, resets)
        aggregate, mixed = self.aggregation.unroll(memory.aggregate, es, resets)
        outputs = over_axes(self.projection, resets.ndim)(mixed)
        return Memory(encoder, aggregate, outputs[-1]), outputs

    def _check_axes(self, memory: Memory, inputs, resets: Array) -> None:
        """Raises a SettingError unless inputs, resets and memory have the same axes."""
        if resets.ndim < 1:
            raise SettingError(f"resets need a time axis, got shape {resets.shape}")
        for leaf in jax.tree.leaves(inputs):
            if jnp.shape(leaf)[: resets.ndim] != resets.shape:
                raise SettingError(
                    f"resets of shape {resets.shape} need inputs that begin with these axes, got {jnp.shape(leaf)}"
                )
        batch, found = resets.shape[1:], memory.output.shape[:-1]
        if batch != found:
            sizes = ", ".join(map(str, batch))
            raise SettingError(
                f"the memory has batch axes {found}, but resets and inputs have {batch}; start({sizes}) has them"
            )

    def _embed(self, inputs):
        x = self.embedding(inputs)
        if x.shape != (self.encoder.input_size,):
            expected = self.encoder.input_size
            raise SettingError(
                f"inputs of this memory must have shape ({expected},), got {x.shape}"
            )
        return x


def _trainable(aggregator):
    """Turns the fields of an aggregator that are not static into arrays, so that they are trained."""
    check_parameters(aggregator)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), aggregator)


def _check_sizes(input_size, width, skip, output_size):
    for name, value in (("input_size", input_size), ("width", width), ("output_size", output_size)):
        if value < 1:
            raise SettingError(f"{name} must be at least 1, got {value}")
    if not 0 <= skip <= 1:
        raise SettingError(
            f"skip must be the fraction of neurons that bypass the aggregator, 0 to 1, got {skip}"
        )
