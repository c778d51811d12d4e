"""The order of inputs matters only to recurrent memories."""

import collections

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.aggregators import Max, Mean
from splagger.analysis import Options
from splagger.analysis.gradients import outputs_of
from splagger.analysis.permutation import permutation_difference, prefix_permutation
from tests.analysis.memories import STEPS, given, small_memory, some_noise
from tests.close import assert_close


@jax.jit
def compiled(memory, inputs, key):
    return permutation_difference(memory, inputs, key, Options())


def differences(memory, inputs, key):
    return np.asarray(compiled(memory, inputs, key)[:, 0])


@pytest.mark.parametrize("aggregator", [Max(), Mean()], ids=["max", "mean"])
def test_invariant_memories_do_not_depend_on_the_order(aggregator):
    memory = small_memory(encoder="pointwise", skip=0.0, aggregator=aggregator)
    assert_close(differences(memory, some_noise(memory), jr.key(3)), np.zeros(STEPS))


def test_recurrent_memories_depend_on_the_order():
    memory = small_memory(skip=1.0)
    found = np.mean([differences(memory, some_noise(memory, s), jr.key(s)) for s in range(5)], 0)
    assert_close(found[0], 0.0)  # one input has one order
    assert (found[1:] > 1e-3).all()


def test_the_order_of_equal_inputs_does_not_matter():
    memory = small_memory(skip=1.0)
    equal = given(jnp.full((STEPS, memory.encoder.input_size), 0.3))
    assert_close(differences(memory, equal, jr.key(0)), np.zeros(STEPS))


def test_the_difference_is_the_distance_between_unit_outputs():
    memory, key = small_memory(skip=1.0), jr.key(4)
    inputs = some_noise(memory)
    expected = []
    for t, step_key in enumerate(jr.split(key, STEPS)):
        order = np.asarray(prefix_permutation(step_key, t, STEPS))[: t + 1]
        assert sorted(order) == list(range(t + 1))
        # Later inputs do not matter; they are zeros here.
        pair = [
            jnp.zeros_like(inputs.xs).at[: t + 1].set(inputs.xs[i]) for i in (np.sort(order), order)
        ]
        a, b = (np.asarray(jax.jit(outputs_of)(memory, xs)[t]) for xs in pair)
        a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
        expected.append(np.linalg.norm(a - b))
    assert_close(differences(memory, inputs, key), np.array(expected))


def test_all_orders_are_equally_likely_and_the_rest_is_unchanged():
    orders = jax.vmap(lambda key: prefix_permutation(key, 2, 5))(jr.split(jr.key(5), 3000))
    assert (np.asarray(orders[:, 3:]) == [3, 4]).all()
    counts = collections.Counter(map(tuple, np.asarray(orders[:, :3]).tolist()))
    assert len(counts) == 6
    assert all(abs(count - 500) < 5 * np.sqrt(500) for count in counts.values())


def test_a_zero_output_gives_no_nan():
    memory = jax.tree.map(jnp.zeros_like, small_memory(skip=1.0))
    assert not differences(memory, some_noise(memory), jr.key(0)).any()
