"""Every aggregator is a commutative monoid, and its scan equals its loop."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

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
from tests.close import assert_close

WIDTH, STEPS = 6, 13
LOW, HIGH = jnp.exp(jr.uniform(jr.key(7), (2,), minval=-3.0, maxval=1.0))  # random temperatures
PLAIN = {
    "max": Max(),
    "sum": Sum(),
    "mean": Mean(),
    "halves": Halves(Mean(), Max()),
    "softmax": Softmax(LOW),
    "weighted-softmax": WeightedSoftmax(HIGH),
    "weighted-mean": WeightedMean(),
    "gaussian": GaussianProduct(),
}
AGGREGATORS = PLAIN | {f"st-{name}": StraightThrough(inner) for name, inner in PLAIN.items()}
every_aggregator = pytest.mark.parametrize("name", AGGREGATORS)

NORMAL = jr.normal(jr.key(0), (6, WIDTH))
INPUTS = {  # six encodings each
    "random": NORMAL,
    "large": 1e4 * NORMAL,
    "huge": 1e4 * jnp.sign(NORMAL),
    "mixed": jnp.where(NORMAL > 0.5, 1e4, NORMAL),
    "equal": jnp.full_like(NORMAL, 0.7),
    "zero": jnp.zeros_like(NORMAL),
}
every_input = pytest.mark.parametrize("inputs", INPUTS)


@jax.jit
def _algebra(aggregator, es):
    """Returns both sides of each law, for three aggregates of two encodings each."""
    combine = aggregator.combine
    lifted = [aggregator.lift(e) for e in es]
    a, b, c = (combine(lifted[i], lifted[i + 1]) for i in (0, 2, 4))
    empty = aggregator.empty(es[0])
    sides = {
        "associative": (combine(combine(a, b), c), combine(a, combine(b, c))),
        "commutative": (combine(a, b), combine(b, a)),
        "left unit": (combine(empty, a), a),
        "right unit": (combine(a, empty), a),
        "unit of itself": (combine(empty, empty), empty),
    }
    reads = {law: tuple(map(aggregator.read, pair)) for law, pair in sides.items()}
    return sides, reads


@ft.cache
def algebra(name, inputs):
    return _algebra(AGGREGATORS[name], INPUTS[inputs])


def scale_of(tree):
    """Returns the largest number, which sets the rounding error of sums; ignores the unit of a maximum."""
    leaves = [np.abs(np.asarray(leaf)) for leaf in jax.tree.leaves(tree)]
    return max([1.0, *(float(x[x < 1e30].max(initial=0.0)) for x in leaves)])


def check(law, name, inputs, exact=False):
    for left, right in (side[law] for side in algebra(name, inputs)):
        tolerance = 0.0 if exact else 1e-6
        assert_close(left, right, rtol=tolerance, atol=tolerance * scale_of(INPUTS[inputs]))


@every_aggregator
@every_input
def test_combine_is_associative(name, inputs):
    check("associative", name, inputs)


@every_aggregator
@every_input
def test_combine_is_commutative(name, inputs):
    check("commutative", name, inputs)


@every_aggregator
@every_input
def test_empty_is_the_unit_to_the_last_bit(name, inputs):
    for law in ("left unit", "right unit", "unit of itself"):
        check(law, name, inputs, exact=True)


def by_scan(aggregator, aggregate, es, resets):
    return jax.vmap(aggregator.read)(prefixes(aggregator, aggregate, es, resets))


def by_steps(aggregator, aggregate, es, resets):
    def step(aggregate, x):
        aggregate = absorb(aggregator, aggregate, *x)
        return aggregate, aggregator.read(aggregate)

    return jax.lax.scan(step, aggregate, (es, resets))[1]


@jax.jit
def both_reads(*args):
    return by_scan(*args), by_steps(*args)


@jax.jit
def both_gradients(aggregator, aggregate, es, resets):
    """Returns reads, and random combinations of their derivatives by temperature, memory and inputs."""

    def differentiate(reads_of):
        reads, vjp = jax.vjp(lambda *args: reads_of(*args, resets), aggregator, aggregate, es)
        return reads, vjp(jr.normal(jr.key(3), reads.shape))

    return differentiate(by_scan), differentiate(by_steps)


def carried(name):
    """Returns the aggregate of four earlier encodings."""
    sides, _ = algebra(name, "random")
    return sides["commutative"][0]


ES = jr.normal(jr.key(2), (STEPS, WIDTH))
TIES = jnp.round(ES) / 2
RESETS = {
    "no resets": np.zeros(STEPS, bool),
    "random resets": np.isin(np.arange(STEPS), (3, 4, 9)),
    "all resets": np.ones(STEPS, bool),
}


@every_aggregator
@pytest.mark.parametrize("resets", RESETS)
def test_prefixes_equal_repeated_absorb_with_their_gradients(name, resets):
    """From an empty and from a nonempty aggregate, without and with ties among the encodings."""
    aggregator = AGGREGATORS[name]
    for aggregate in (aggregator.empty(ES[0]), carried(name)):
        for es in (ES, TIES):
            scan, steps = both_gradients(aggregator, aggregate, es, RESETS[resets])
            assert_close(scan, steps, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("steps", [1, 2, 1000])
def test_prefixes_equal_repeated_absorb_for_few_and_many_steps(name, steps):
    es = jr.normal(jr.key(4), (steps, WIDTH))
    resets = jr.bernoulli(jr.key(5), 0.01, (steps,))
    scan, loop = both_reads(AGGREGATORS[name], carried(name), es, resets)
    assert_close(scan, loop, rtol=1e-4, atol=1e-4)


@every_aggregator
@every_input
def test_extreme_inputs_leave_reads_equal_and_gradients_finite(name, inputs):
    es = jnp.tile(INPUTS[inputs], (3, 1))[:STEPS]
    scan, steps = both_gradients(AGGREGATORS[name], carried(name), es, RESETS["random resets"])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((scan, steps)))
    assert_close(scan[0], steps[0], rtol=1e-5, atol=1e-6 * scale_of(es))


@every_aggregator
def test_the_last_read_ignores_order(name):
    aggregator = AGGREGATORS[name]
    empty, resets = aggregator.empty(ES[0]), RESETS["no resets"]
    permuted = jr.permutation(jr.key(6), ES)
    reads = [both_gradients(aggregator, empty, es, resets)[0][0][-1] for es in (ES, permuted)]
    assert np.linalg.norm(reads[0] - reads[1]) <= 1e-6 * np.linalg.norm(reads[0])
