"""Which step set a maximum, compared with a plain loop, with resets, ties and the floor."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.aggregators import Halves, Max, Mean, StraightThrough, prefixes
from splagger.analysis import Options
from splagger.analysis.remember import NOTHING_YET, held_over_time, holds_maxima, memory_events
from tests.analysis.memories import STEPS, WIDTH, small_memory, some_noise
from tests.close import assert_close


class Largest(Max):
    """The largest absolute value."""

    def lift(self, e):
        return jnp.abs(e)


LONG = 30


def naive(es, resets, floor):
    """Returns (values, steps), each [T, D], by looking back from every step to the last reset."""
    values, steps = np.full(es.shape, floor, np.float32), np.full(es.shape, NOTHING_YET)
    for t in range(len(es)):
        start = max([s for s in range(t + 1) if resets[s]], default=0)
        for d in range(es.shape[1]):
            for s in range(start, t + 1):
                if es[s, d] > values[t, d]:
                    values[t, d], steps[t, d] = es[s, d], s
    return values, steps


RESETS = {
    "none": np.zeros(LONG, bool),
    "first": np.arange(LONG) == 0,
    "last": np.arange(LONG) == LONG - 1,
    "every": np.ones(LONG, bool),
    "two in a row": np.isin(np.arange(LONG), (9, 10)),
    "some": np.random.default_rng(0).random(LONG) < 0.2,
}


@pytest.mark.parametrize("floor", [0.0, 0.7, -100.0])
@pytest.mark.parametrize("resets", RESETS.values(), ids=RESETS)
def test_the_step_matches_a_plain_loop(resets, floor):
    # Few distinct values give many ties, also with the floor.
    es = np.random.default_rng(1).integers(-3, 4, (LONG, 5)).astype(np.float32) / 2
    es[:, 0] = -np.arange(LONG)  # never above the floor of 0
    held = held_over_time(jnp.asarray(es), jnp.asarray(resets), floor)
    values, steps = naive(es, resets, floor)
    assert np.array_equal(held.step, steps)
    assert np.array_equal(held.value, values)
    if floor == 0.0:
        assert (np.asarray(held.step[:, 0]) == NOTHING_YET).all()


@jax.jit
def running_maxima(es, resets):
    return jax.vmap(Max().read)(prefixes(Max(), Max().empty(es[0]), es, resets))


@pytest.mark.parametrize("resets", RESETS.values(), ids=RESETS)
def test_the_value_matches_the_aggregator(resets):
    es = jr.normal(jr.key(0), (LONG, 4))
    held = held_over_time(es, jnp.asarray(resets))
    assert_close(held.value, running_maxima(es, jnp.asarray(resets)), rtol=0, atol=0)


@pytest.mark.parametrize("aggregator, skip", [(Max(), 0.5), (StraightThrough(Max()), 0.0)])
def test_the_last_event_matches_the_memory(aggregator, skip):
    memory = small_memory(aggregator=aggregator, skip=skip)
    inputs = some_noise(memory)

    @jax.jit
    def both(memory):
        start, resets = memory.start(), jnp.zeros(STEPS, bool)
        state, _ = memory.unroll_embedded(start, inputs.xs, resets)
        events = memory_events(memory, inputs, jr.key(0), Options())
        return events, aggregator.read(state.aggregate)

    events, read = map(np.asarray, both(memory))
    width = WIDTH - int(WIDTH * skip)
    assert events.shape == (STEPS + 1, width)
    assert (events[0] == 0).all()  # the floor, before the first input
    last = [column[~np.isnan(column)][-1] for column in events.T]
    assert_close(np.array(last), read, rtol=0, atol=0)
    for column in events.T:  # a new value is a higher one
        assert (np.diff(column[~np.isnan(column)]) > 0).all()


def test_only_maxima_have_events():
    assert holds_maxima(small_memory()) and holds_maxima(small_memory(skip=0.0))
    assert holds_maxima(small_memory(aggregator=StraightThrough(Max())))
    assert not holds_maxima(small_memory(aggregator=Largest()))  # which may keep anything
    for settings in ({"skip": 1.0}, {"aggregator": Mean()}, {"aggregator": Halves(Mean(), Max())}):
        assert not holds_maxima(small_memory(**settings))
