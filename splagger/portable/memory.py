"""The memory f(τ) in NumPy: embed, encode, aggregate, project."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from splagger.images import Image
from splagger.portable.aggregators import aggregator
from splagger.portable.arrays import Arrays, Vector, known
from splagger.portable.encoders import ENCODERS
from splagger.portable.numpy_vision import NumpyVision


class Memory(NamedTuple):
    """The state of an encoder, the aggregate of its encodings, and the output that conditions the policy."""

    encoder: Any
    aggregate: Any
    output: Vector


class NumpyMemory:
    """A memory for one transition at a time, as `splagger.SequenceModel` is.

    - `arrays`: those of the memory in an agent file.
    - `method`: the description of the method in that file.
    - `context`: the largest number of transitions in a task, beyond which a Transformer forgets the oldest ones.
    - `images`: those at the beginning of observations.
    """

    def __init__(
        self,
        arrays: Arrays,
        method: Mapping[str, Any],
        context: int,
        images: Sequence[Image] = (),
    ):
        bottleneck, encoder = method["bottleneck"], arrays.below("encoder")
        build = known(ENCODERS, method["encoder"], "encoder")
        inner = encoder.below("inner") if bottleneck else encoder
        state, self._step, inputs = build(inner, context)
        self._narrow = encoder.linear("linear") if bottleneck else _same
        self._project = _same if bottleneck else arrays.linear("projection")
        self._embed = embedding(arrays.below("embedding"), images) if inputs else _nothing
        place = arrays.below("aggregation").below("aggregator")
        self._aggregator = aggregator(method["aggregator"], place)
        e = self._narrow(self._step(state, np.zeros(inputs, np.float32))[1])
        self._skip = int(len(e) * method["skip"])
        nothing = self._aggregator.empty(e[self._skip :])
        # The output of an empty memory is that for one all-zero input, which is not kept.
        self.empty = Memory(state, nothing, self._read(self._absorb(nothing, e), e))

    def step(self, memory: Memory, obs, action, reward, next_obs) -> Memory:
        """Returns the memory after one more transition; `action` is encoded, `reward` has one element."""
        encoder, e = self._step(memory.encoder, self._embed(obs, action, reward, next_obs))
        e = self._narrow(e)
        aggregate = self._absorb(memory.aggregate, e)
        return Memory(encoder, aggregate, self._read(aggregate, e))

    def _absorb(self, aggregate, e):
        return self._aggregator.combine(aggregate, self._aggregator.lift(e[self._skip :]))

    def _read(self, aggregate, e):
        """Projects [neurons that bypass the aggregator; aggregated neurons]."""
        return self._project(np.concatenate([e[: self._skip], self._aggregator.read(aggregate)]))


def embedding(arrays: Arrays, images: Sequence[Image] = ()):
    """Returns x = ReLU [φ(s); φ(a); φ(r); φ(s')] as a function of a transition."""
    state, action, reward = (arrays.linear(name) for name in ("state", "action", "reward"))
    vision = NumpyVision(arrays.below("vision"), images)

    def embed(obs, encoded, rewards, next_obs):
        parts = state(vision(obs)), action(encoded), reward(rewards), state(vision(next_obs))
        return np.maximum(np.concatenate(parts), 0)

    return embed


def _same(x: Vector) -> Vector:
    return x


def _nothing(*transition) -> Vector:
    return np.zeros(0, np.float32)
