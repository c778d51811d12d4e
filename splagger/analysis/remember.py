"""What a memory that aggregates by maximum remembers: the step that set each neuron's value."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.aggregators import Max
from splagger.analysis.inputs import Inputs
from splagger.analysis.options import Options
from splagger.memory import SequenceModel

NOTHING_YET = -1  # the step of a neuron that still reads its floor


class Held(NamedTuple):
    """A neuron's running maximum, and the step at which it was seen."""

    value: Float[Array, "*T D"]
    step: Int[Array, "*T D"]


def held_over_time(
    es: Float[Array, "T D"], resets: Bool[Array, " T"], floor: float | int = 0.0
) -> Held:
    """max(floor, e₀, …, eₜ) of every neuron since the last reset, and which step it came from, for every t.

    The earliest of equal encodings counts, and what does not rise above the floor sets nothing.

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
    """Each aggregated neuron's value where it took a new one, NaN elsewhere; T + 1 rows, the first of the floors.

    What a neuron holds at any time is its last event, so that few numbers tell the whole story.
    """
    resets = jnp.zeros(len(inputs.xs), bool)
    _, es = memory.encoder.unroll(memory.encoder.start(), inputs.xs, resets)
    floor = _maximum(memory).floor
    held = held_over_time(es[:, memory.aggregation.skip :], resets, floor)
    new = held.step == jnp.arange(len(es))[:, None]
    return jnp.concatenate(
        [jnp.full_like(held.value[:1], floor), jnp.where(new, held.value, jnp.nan)]
    )


def holds_maxima(memory: SequenceModel) -> bool:
    """Whether neurons are aggregated by maximum (AMRL's straight-through gradient does not matter)."""
    aggregated = memory.aggregation.width - memory.aggregation.skip
    return aggregated > 0 and isinstance(_maximum(memory), Max)


def _maximum(memory: SequenceModel) -> Any:
    aggregator = memory.aggregation.aggregator
    return getattr(aggregator, "inner", aggregator)
