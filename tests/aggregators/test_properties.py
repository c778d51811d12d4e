"""The laws of aggregators on random encodings and resets."""

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splagger.aggregators import (
    GaussianProduct,
    Halves,
    Max,
    Mean,
    Softmax,
    StraightThrough,
    Sum,
    WeightedMean,
    WeightedSoftmax,
    absorb,
    prefixes,
)

WIDTH, STEPS = 4, 6
AGGREGATORS = {
    "max": Max(),
    "sum": Sum(),
    "mean": Mean(),
    "halves": Halves(Mean(), Max()),
    "softmax": Softmax(0.5),
    "weighted-softmax": WeightedSoftmax(0.5),
    "weighted-mean": WeightedMean(),
    "gaussian": GaussianProduct(),
    "straight-through": StraightThrough(Max()),
}
NUMBERS = st.floats(-100, 100, width=32, allow_subnormal=False)
ROW = st.lists(NUMBERS, min_size=WIDTH, max_size=WIDTH)
ENCODINGS = st.lists(ROW, min_size=STEPS, max_size=STEPS).map(lambda rows: np.float32(rows))
RESETS = st.lists(st.booleans(), min_size=STEPS, max_size=STEPS).map(np.array)


@jax.jit
def sides(aggregator, es, resets):
    """Returns what is read on both sides of each law."""
    combine, empty = aggregator.combine, aggregator.empty(es[0])
    a, b, c = (aggregator.lift(e) for e in es[:3])
    a = combine(a, aggregator.lift(es[3]))
    laws = {
        "associative": (combine(combine(a, b), c), combine(a, combine(b, c))),
        "commutative": (combine(a, b), combine(b, a)),
        "left unit": (combine(empty, a), a),
        "right unit": (combine(a, empty), a),
    }
    step = lambda m, x: (absorb(aggregator, m, *x),) * 2  # noqa: E731
    _, loop = jax.lax.scan(step, a, (es, resets))
    read = {law: tuple(map(aggregator.read, pair)) for law, pair in laws.items()}
    scan = prefixes(aggregator, a, es, resets)
    return read | {"prefixes": tuple(map(jax.vmap(aggregator.read), (scan, loop)))}


@pytest.mark.parametrize("name", AGGREGATORS)
@hypothesis.settings(max_examples=25)
@given(ENCODINGS, RESETS)
def test_the_laws_hold_for_random_encodings(name, es, resets):
    for law, (left, right) in sides(AGGREGATORS[name], es, resets).items():
        assert np.isfinite(left).all(), law
        exact = law.endswith("unit")
        scale = max(1.0, float(np.abs(right).max()), float(np.abs(es).max()))
        tolerance = 0.0 if exact else 1e-5 * scale
        np.testing.assert_allclose(left, right, rtol=0, atol=tolerance, err_msg=law)


@pytest.mark.parametrize("name", AGGREGATORS)
@hypothesis.settings(max_examples=10)
@given(ENCODINGS)
def test_a_reset_forgets_everything_before_it(name, es):
    """The read after a reset at the last step is that of the last encoding alone."""
    aggregator, resets = AGGREGATORS[name], np.arange(STEPS) == STEPS - 1
    other = np.concatenate([es[::-1][:-1] + 1, es[-1:]])
    one, two = (np.asarray(sides(aggregator, x, resets)["prefixes"][0][-1]) for x in (es, other))
    np.testing.assert_array_equal(one, two)
