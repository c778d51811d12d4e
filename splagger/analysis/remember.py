"""The contents of memories that aggregate by maximum: the step that set each neuron's value."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.aggregators import Max, StraightThrough
from splagger.analysis.inputs import Inputs
from splagger.analysis.options import Options
from splagger.memory import SequenceModel

NOTHING_YET = -1  # the step of a neuron whose value is still the floor


class Held(NamedTuple):
    """Running maxima of neurons, and the steps that set them."""

    value: Float[Array, "*T D"]
    step: Int[Array, "*T D"]


def held_over_time(
    es: Float[Array, "T D"], resets: Bool[Array, " T"], floor: float | int = 0.0
) -> Held:
    """Computes max(floor, e₀, …, eₜ) of every neuron since the last reset and the step that set it, for every t.

    Of equal encodings, the earliest counts. Encodings that are not above the floor set nothing.

    >>> es = jnp.array([[1.0], [3.0], [2.0], [-1.0]])
    >>> held = held_over_time(es, jnp.array([False, False, True, True]))
    >>> held.step.ravel().tolist(), held.value.ravel().tolist()
    ([0, 1, 2, -1], [1.0, 3.0, 2.0, 0.0])
    """
    nothing = Held(jnp.full_like(es[0], floor), jnp.full(es.shape[1], NOTHING_YET))

    def absorb(held, x):
        e, reset, step = x
        held = jax.tree.map(lambda empty, kept: jnp.where(reset, empty, kept), nothing, held)
        higher = e > held.value
        held = Held(jnp.where(higher, e, held.value), jnp.where(higher, step, held.step))
        return held, held

    return jax.lax.scan(absorb, nothing, (es, resets, jnp.arange(len(es))))[1]


def memory_events(
    memory: SequenceModel, inputs: Inputs, key: Key[Array, ""], options: Options
) -> Float[Array, "T1 D"]:
    """Returns each aggregated neuron's value at the steps that changed it, NaN elsewhere.

    The first of the T + 1 rows holds the floor. A neuron's value at any time is its last event.
    """
    resets = jnp.zeros(len(inputs.xs), bool)
    _, es = memory.encoder.unroll(memory.encoder.start(), inputs.xs, resets)
    floor = maximum_of(memory).floor
    held = held_over_time(es[:, memory.aggregation.skip :], resets, floor)
    new = held.step == jnp.arange(len(es))[:, None]
    return jnp.concatenate(
        [jnp.full_like(held.value[:1], floor), jnp.where(new, held.value, jnp.nan)]
    )


def holds_maxima(memory: SequenceModel) -> bool:
    """Returns whether neurons are aggregated by maximum, with or without AMRL's straight-through gradient."""
    aggregated = memory.aggregation.width - memory.aggregation.skip
    return aggregated > 0 and type(maximum_of(memory)) is Max  # subclasses may mean anything


def maximum_of(memory: SequenceModel) -> Any:
    """Returns the aggregator, without AMRL's straight-through gradient."""
    aggregator = memory.aggregation.aggregator
    return aggregator.inner if type(aggregator) is StraightThrough else aggregator
