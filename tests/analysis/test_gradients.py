"""Gradients, compared with closed forms, finite differences and plain JAX."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from splagger.aggregators import Max, Mean, StraightThrough, Sum
from splagger.analysis import Options
from splagger.analysis.gradients import (
    gradient_first,
    gradient_inputs,
    gradient_parameters,
    outputs_of,
)
from tests.analysis.memories import OUTPUTS, STEPS, given, linear_memory, small_memory, some_noise
from tests.close import assert_close

KEY, SUMMED, JACOBIAN = jr.key(0), Options(), Options(jacobian=True)
SIZES = {
    SUMMED: lambda matrix: np.linalg.norm(matrix.sum(axis=0)),
    JACOBIAN: np.linalg.norm,
}
MEASURES = gradient_first, gradient_parameters, gradient_inputs
both = pytest.mark.parametrize("options", SIZES, ids=["summed", "jacobian"])
KINDS = {
    "splagger": {},
    "amrl": {"aggregator": StraightThrough(Max())},
}


compiled = jax.jit(
    lambda measure, memory, inputs, options: measure(memory, inputs, KEY, options)[:, 0],
    static_argnums=(0, 3),
)


def series(measure, memory, options=SUMMED, inputs=None):
    inputs = some_noise(memory) if inputs is None else inputs
    return np.asarray(compiled(measure, memory, inputs, options))


def through(memory, options):
    """Returns the size of P W: the derivative of an output by an input that passes unchanged."""
    return SIZES[options](np.asarray(memory.projection.weight @ memory.encoder.linear.weight))


@both
def test_the_first_gradient_of_a_mean_decays_as_one_over_t(options):
    memory = linear_memory(Mean())
    expected = through(memory, options) / np.arange(1, STEPS + 1)
    assert_close(series(gradient_first, memory, options), expected)


def test_a_sum_and_a_straight_through_gradient_do_not_decay():
    for aggregator in (Sum(), StraightThrough(Max())):
        memory = linear_memory(aggregator)
        expected = np.full(STEPS, through(memory, SUMMED))
        assert_close(series(gradient_first, memory), expected)
        assert_close(series(gradient_inputs, memory), expected)


@both
def test_a_mean_weighs_all_inputs_equally(options):
    memory = linear_memory(Mean())
    expected = np.full(STEPS, through(memory, options) / STEPS)
    assert_close(series(gradient_inputs, memory, options), expected)


def test_the_gradient_of_a_maximum_flows_to_the_step_that_holds_it():
    """If all encodings stay below the floor, as the first neuron's do here, there is no gradient."""
    memory = linear_memory(Max())
    bias = memory.encoder.linear.bias.at[0].set(-100.0)
    memory = eqx.tree_at(lambda m: m.encoder.linear.bias, memory, bias)
    es = np.asarray(jax.vmap(memory.encoder.linear)(some_noise(memory).xs))
    holder = np.where(es.max(axis=0) > 0, es.argmax(axis=0), -1)
    assert holder[0] == -1 and 1 < len(set(holder[1:])) < STEPS
    weight, projection = memory.encoder.linear.weight, memory.projection.weight
    expected = [SIZES[SUMMED](projection @ (weight * (holder == s)[:, None])) for s in range(STEPS)]
    found = series(gradient_inputs, memory)
    assert_close(found, np.array(expected))
    assert set(np.flatnonzero(found)) == set(holder) - {-1}


@pytest.mark.parametrize("aggregator", [StraightThrough(Max()), Max()], ids=["st", "max"])
def test_the_straight_through_gradient_of_the_parameters_explodes(aggregator):
    """With equal inputs, W's gradient after t steps is that of one step, times t if straight through; P's is constant."""
    memory = linear_memory(aggregator)
    inputs = given(jnp.full((STEPS, memory.encoder.input_size), 2.0))
    first = jax.jit(jax.grad(lambda memory: outputs_of(memory, inputs.xs)[0].sum()))(memory)
    encoder, whole = (
        sum(float(jnp.sum(g**2)) for g in jax.tree.leaves(part)) for part in (first.encoder, first)
    )
    times = np.arange(1, STEPS + 1) if isinstance(aggregator, StraightThrough) else np.ones(STEPS)
    expected = np.sqrt(whole - encoder + encoder * times**2)
    assert_close(series(gradient_parameters, memory, inputs=inputs), expected, rtol=1e-4)


@pytest.mark.parametrize("kind", ["splagger", pytest.param("amrl", marks=pytest.mark.slow)])
def test_sizes_match_the_naive_jacobian(kind):
    """Both options: the full Jacobian, and the sum over its outputs."""
    memory = small_memory(**KINDS[kind])
    xs = some_noise(memory).xs
    by_memory, by_xs = jax.jit(jax.jacrev(outputs_of, argnums=(0, 1)))(memory, xs)
    leaves = [np.asarray(leaf).reshape(STEPS, OUTPUTS, -1) for leaf in jax.tree.leaves(by_memory)]
    theta = np.concatenate(leaves, axis=2)
    by_xs = np.asarray(by_xs)  # [T, out, T, X]
    for options, size in SIZES.items():
        first = [size(by_xs[t, :, 0]) for t in range(STEPS)]
        parameters = [size(theta[t]) for t in range(STEPS)]
        last = [size(by_xs[-1, :, t]) for t in range(STEPS)]
        found = [series(measure, memory, options) for measure in MEASURES]
        assert_close(np.array(found), np.array([first, parameters, last]))
        fourth = [size(by_xs[3, :, t]) for t in range(STEPS)]  # for a sequence that ends earlier
        assert_close(series(gradient_inputs, memory, options, given(xs, last=3)), np.array(fourth))
        assert not any(fourth[4:])


def test_sizes_match_finite_differences():
    """Only for SplAgger: AMRL's gradient is not a derivative."""
    memory = small_memory()
    xs = some_noise(memory).xs
    flat, rebuild = ravel_pytree((memory, xs))
    moves = 1e-3 * jnp.eye(flat.size)
    summed = jax.jit(jax.vmap(lambda move: outputs_of(*rebuild(flat + move)).sum(axis=1)))
    derivative = np.asarray(summed(moves) - summed(-moves)) / 2e-3  # [number, T]
    by_memory, by_xs = np.split(derivative, [flat.size - xs.size])
    by_xs = np.linalg.norm(by_xs.reshape(STEPS, -1, STEPS), axis=1)  # [input, output]
    expected = np.array([by_xs[0], np.linalg.norm(by_memory, axis=0), by_xs[:, -1]])
    found = np.array([series(measure, memory) for measure in MEASURES])
    assert_close(found, expected, rtol=5e-3, atol=2e-3)


def test_a_sequence_may_have_one_step():
    memory = linear_memory(Mean())
    one = some_noise(memory, steps=1)
    by_first, by_inputs = (series(m, memory, inputs=one) for m in (gradient_first, gradient_inputs))
    assert by_first.shape == (1,) and by_first == by_inputs > 0
