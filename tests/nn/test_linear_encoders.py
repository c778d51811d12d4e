"""Encoders that are linear in their state: each matches its definition, and a sequence needs few sequential steps."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.nn import LRU, MLSTM, MinGRU
from splagger.nn.lru import Complex
from splagger.nn.mlstm import KEY_SIZE, FastWeights
from splagger.nn.scan import linear_recurrence
from tests.close import assert_close
from tests.nn.test_recurrent import (
    ENCODERS,
    INPUTS,
    RESETS,
    STEPS,
    WIDTH,
    XS,
    by_definition,
    by_steps,
    differentiate,
    doubles,
    every_reset,
    states,
    unroll,
)
from tests.parity import numpy_models as naive

LINEAR = ("mingru", "lru", "mlstm")


@every_reset
def test_mingru_matches_its_definition(resets):
    mingru, state = ENCODERS["mingru"], jr.normal(jr.key(2), (WIDTH,))
    weight, bias = doubles((mingru.gates.weight, mingru.gates.bias))
    (w_z, w_c), (b_z, b_c) = np.split(weight, 2), np.split(bias, 2)
    args = doubles(XS), RESETS[resets], doubles(state), w_z, b_z, w_c, b_c
    outputs, last = naive.mingru_unroll(*args)
    assert_close(unroll(mingru, state, XS, RESETS[resets]), (last, outputs))


@every_reset
def test_lru_matches_its_definition_in_complex_numbers(resets):
    lru = doubles(ENCODERS["lru"])
    state = Complex(*jr.normal(jr.key(2), (2, WIDTH)))
    real, imaginary = np.split(lru.input.weight, 2)
    offset_real, offset_imaginary = np.split(lru.input.bias, 2)
    c_real, c_imaginary, d = np.split(lru.output.weight, (WIDTH, 2 * WIDTH), axis=1)
    outputs, last = naive.lru_unroll(
        doubles(XS),
        RESETS[resets],
        doubles(state.real) + 1j * doubles(state.imaginary),
        *(lru.nu, lru.theta, lru.log_gamma),
        *(real + 1j * imaginary, c_real - 1j * c_imaginary, d),
        (offset_real + 1j * offset_imaginary, lru.output.bias),
        *(lru.gate.weight, lru.gate.bias),
    )
    expected = Complex(last.real, last.imag), outputs
    assert_close(unroll(ENCODERS["lru"], state, XS, RESETS[resets]), expected, atol=5e-6)


@every_reset
def test_mlstm_matches_its_definition(resets):
    mlstm = ENCODERS["mlstm"]
    state = FastWeights(2 * jr.normal(jr.key(2), mlstm.start().matrix.shape))
    layers = (mlstm.keys, mlstm.queries, mlstm.values)
    layers += (mlstm.input_gates, mlstm.forget_gates, mlstm.output_gates)
    params = {n: (x.weight, x.bias) for n, x in zip("kqvifo", doubles(layers), strict=True)}
    start = [(matrix[:-1], matrix[-1]) for matrix in doubles(state.matrix)]
    outputs, last = naive.mlstm_unroll(doubles(XS), RESETS[resets], start, params)
    stacked = FastWeights(np.stack([np.vstack([matrix, n]) for matrix, n in last]))
    assert_close(unroll(mlstm, state, XS, RESETS[resets]), (stacked, outputs), atol=5e-6)


@pytest.mark.parametrize("name", LINEAR)
def test_the_state_is_linear_in_the_state_before(name):
    """The property that makes an associative scan possible: doubling the state doubles its influence."""
    encoder, none = ENCODERS[name], RESETS["no"]
    empty = encoder.start()
    state = jax.tree.map(lambda s: jr.normal(jr.key(3), s.shape), empty)
    double = jax.tree.map(lambda s: 2 * s, state)
    zero, one, two = (unroll(encoder, s, XS[:5], none[:5])[0] for s in (empty, state, double))
    expected = jax.tree.map(lambda a, b: a + 2 * (b - a), zero, one)
    assert_close(two, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LINEAR)
def test_a_long_sequence_has_few_sequential_steps(name):
    """No loop of the compiled program has as many iterations as the sequence has steps."""
    encoder, steps = ENCODERS[name], 400
    shapes = jnp.zeros((steps, INPUTS)), jnp.zeros(steps, bool)
    jaxpr = str(jax.make_jaxpr(lambda e: e.unroll(e.start(), *shapes))(encoder))
    lengths = [int(part.split()[0]) for part in jaxpr.split("length=")[1:]]
    assert lengths and max(lengths) <= 20  # √400


@pytest.mark.parametrize("name", LINEAR)
def test_states_are_in_single_precision(name):
    """Complex numbers are pairs of real ones."""
    encoder = ENCODERS[name]
    state, outputs = unroll(encoder, encoder.start(), XS, RESETS["some"])
    assert {leaf.dtype for leaf in jax.tree.leaves((state, outputs))} == {jnp.dtype("float32")}


def test_a_carried_state_enters_the_first_step_unless_it_resets():
    ones, start = jnp.ones((2, 1)), jnp.array([8.0])
    for reset, expected in ((False, [5.0, 3.5]), (True, [1.0, 1.5])):
        resets = jnp.array([reset, False])
        assert linear_recurrence(0.5 * ones, ones, start, resets).ravel().tolist() == expected


def test_eigenvalues_start_on_their_ring_and_states_keep_their_variance():
    lru = LRU.create(jr.key(0), INPUTS, 2000)
    radius = np.exp(-np.exp(lru.nu))
    assert radius.min() >= 0.9 and radius.max() <= 0.999
    # Uniform over the area of the ring: the squared radius is uniformly distributed.
    squared = np.sort((radius**2 - 0.81) / (0.999**2 - 0.81))
    assert np.abs(squared - np.linspace(0, 1, 2000)).max() < 0.04
    phases = np.exp(lru.theta)
    assert phases.min() > 0 and phases.max() <= np.pi / 10
    np.testing.assert_allclose(np.exp(lru.log_gamma) ** 2, 1 - radius**2, rtol=1e-3)


def test_forget_gates_of_an_mlstm_start_open_for_every_input():
    mlstm = MLSTM.create(jr.key(0), INPUTS, 16)
    gates = jax.vmap(mlstm.forget_gates)(XS)
    assert_close(gates, np.tile(np.linspace(3, 6, 4), (STEPS, 1)))
    assert mlstm.start().matrix.shape == (4, 16 // 4 + 1, KEY_SIZE)


def test_a_mingru_starts_with_orthogonal_weights_and_half_open_gates():
    mingru = MinGRU.create(jr.key(0), 5, 6)
    weight = mingru.gates.weight
    assert_close(weight.T @ weight, np.eye(5), atol=1e-5)
    assert not np.any(mingru.gates.bias)


@pytest.mark.parametrize("name", LINEAR)
def test_the_derivative_equals_that_of_single_steps(name):
    """By every parameter, input and initial state; rows are reset at different times."""
    resets = jnp.stack([jnp.roll(RESETS["some"], i) for i in range(3)], axis=1)
    args = ENCODERS[name], states(name, 3), jr.normal(jr.key(5), (STEPS, 3, INPUTS)), resets
    alone = lambda encoder, *args: jax.vmap(  # noqa: E731
        lambda *one: by_steps(encoder, *one), in_axes=(0, 1, 1), out_axes=(0, 1)
    )(*args)
    both = [differentiate(run, *args) for run in (by_definition, alone)]
    assert_close(*both, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LINEAR)
def test_two_batch_axes_equal_single_sequences(name):
    """Tasks and environments, as in a replay of whole tasks."""
    encoder, xs = ENCODERS[name], jr.normal(jr.key(5), (STEPS, 2, 3, INPUTS))
    resets = jr.bernoulli(jr.key(6), 0.2, (STEPS, 2, 3))
    args = states(name, 2, 3), xs, resets
    alone = lambda *args: encoder.unroll(*args)  # noqa: E731
    for _ in range(2):
        alone = jax.vmap(alone, in_axes=(0, 1, 1), out_axes=(0, 1))
    batch = jax.jit(lambda *args: encoder.unroll_batch(*args))(*args)
    assert_close(batch, jax.jit(alone)(*args), rtol=1e-5, atol=2e-6)
