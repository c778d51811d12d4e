"""Every aggregator matches its formula."""

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
    prefixes,
    read_size,
)
from tests.close import assert_close
from tests.parity import numpy_models as naive

WIDTH, STEPS = 8, 9
# name → aggregator, formula of a whole prefix, read size for 8 neurons; temperatures divide exactly
TABLE = {
    "max": (Max(), naive.agg_max, 8),
    "sum": (Sum(), naive.agg_sum, 8),
    "mean": (Mean(), naive.agg_mean, 8),
    "halves": (Halves(Mean(), Max()), naive.agg_avgmax, 8),
    "softmax": (Softmax(0.125), ft.partial(naive.agg_softmax, temperature=0.125), 8),
    "softmax at 1": (Softmax(1.0), ft.partial(naive.agg_softmax, temperature=1.0), 8),
    "weighted softmax": (
        WeightedSoftmax(0.25),
        ft.partial(naive.agg_weighted_softmax, temperature=0.25),
        4,
    ),
    "weighted mean": (WeightedMean(), naive.agg_weighted_mean, 4),
    "gaussian": (GaussianProduct(), naive.agg_gaussian_product, 8),
}
every_row = pytest.mark.parametrize("name", TABLE)
ES = jr.normal(jr.key(0), (STEPS, WIDTH))
NO_RESETS = jnp.zeros(STEPS, bool)


def _running_reads(aggregator, es):
    """Returns the reads of the empty prefix and of all longer ones."""
    empty = aggregator.empty(es[0])
    rest = jax.vmap(aggregator.read)(prefixes(aggregator, empty, es, NO_RESETS))
    return jnp.concatenate([aggregator.read(empty)[None], rest])


running_reads = jax.jit(_running_reads)
jacobian_of_reads = jax.jit(jax.jacrev(_running_reads, argnums=1))


@every_row
@pytest.mark.parametrize("scale", [1.0, 50.0], ids=["ordinary", "large logits"])
def test_every_prefix_matches_the_formula(name, scale):
    aggregator, formula, _ = TABLE[name]
    es = np.asarray(scale * ES, np.float64)
    expected = np.stack([formula(es[:t]) for t in range(STEPS + 1)])
    assert_close(running_reads(aggregator, scale * ES), expected, rtol=2e-5, atol=1e-6 * scale)


@every_row
def test_straight_through_reads_like_its_inner_aggregator(name):
    aggregator = TABLE[name][0]
    wrapped = running_reads(StraightThrough(aggregator), ES)
    np.testing.assert_array_equal(wrapped, running_reads(aggregator, ES))


@every_row
def test_read_size_is_the_size_of_a_read(name):
    aggregator, _, size = TABLE[name]
    assert read_size(aggregator, WIDTH) == size
    assert read_size(StraightThrough(aggregator), WIDTH) == size
    assert running_reads(aggregator, ES).shape == (STEPS + 1, size)


@every_row
def test_the_straight_through_derivative_is_the_identity_for_every_past_input(name):
    """Also for inputs that do not affect the read; logits and weights get no gradient."""
    aggregator, _, size = TABLE[name]
    jacobian = jacobian_of_reads(StraightThrough(aggregator), ES)
    for t in range(STEPS + 1):
        for i in range(STEPS):
            expected = np.eye(size, WIDTH) if i < t else np.zeros((size, WIDTH))
            np.testing.assert_array_equal(jacobian[t, :, i], expected)


def test_the_earliest_of_equal_maxima_gets_the_whole_gradient():
    es = jnp.tile(jnp.abs(ES[:1]) + 1.0, (STEPS, 1))
    jacobian = jacobian_of_reads(Max(), es)[-1]
    np.testing.assert_array_equal(jacobian[:, 0], np.eye(WIDTH))
    np.testing.assert_array_equal(jacobian[:, 1:], np.zeros((WIDTH, STEPS - 1, WIDTH)))


def test_max_reads_its_floor_where_nothing_is_above_it():
    assert running_reads(Max(floor=-0.5), -jnp.ones((STEPS, 2))).tolist() == [[-0.5] * 2] * 10


def test_softmax_lies_between_mean_and_max():
    es = jnp.abs(ES)
    hot = running_reads(Softmax(1e4), es)
    cold = running_reads(Softmax(1e-4), es)
    assert_close(hot, running_reads(Mean(), es), rtol=1e-3, atol=1e-3)
    assert_close(cold, running_reads(Max(), es))


@pytest.mark.parametrize("kind", [Softmax, WeightedSoftmax])
def test_a_learned_temperature_below_zero_does_not_prefer_small_values(kind):
    assert_close(running_reads(kind(-0.2), ES), running_reads(kind(1e-3), ES))


def test_the_straight_through_derivative_of_halves_is_that_of_each_half():
    """In [v; u; x] with weights u, the values v and x get the gradient."""
    wrapped = jacobian_of_reads(StraightThrough(Halves(WeightedMean(), Max())), ES)
    apart = jacobian_of_reads(Halves(StraightThrough(WeightedMean()), StraightThrough(Max())), ES)
    np.testing.assert_array_equal(wrapped, apart)


def test_the_variance_of_a_gaussian_product_only_falls():
    log_variance = running_reads(GaussianProduct(), ES)[:, WIDTH // 2 :]
    assert bool((jnp.diff(log_variance, axis=0) <= 0).all())


@pytest.mark.parametrize("aggregator", [WeightedSoftmax(), WeightedMean(), GaussianProduct()])
@pytest.mark.parametrize("wrap", [lambda inner: inner, StraightThrough], ids=["plain", "st"])
def test_the_error_for_an_odd_width_names_the_aggregator(aggregator, wrap):
    """For aggregators in which half of the numbers weigh the other half."""
    wrapped, name = wrap(aggregator), type(aggregator).__name__
    for function in (wrapped.lift, wrapped.empty):
        with pytest.raises(ValueError, match=f"{name} .* 5 is odd"):
            function(jnp.zeros(5))
    with pytest.raises(ValueError, match=name):
        read_size(wrapped, 5)
