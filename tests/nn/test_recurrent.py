"""Recurrent encoders: the whole sequence is its steps, and every cell is its definition."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.test_util import check_grads

from splagger.nn import GRU, LSTM, LayerNorm, Linear, Transformer
from splagger.sequence import Pointwise
from tests.close import assert_close
from tests.parity import numpy_models as naive

INPUTS, WIDTH, STEPS, CONTEXT = 5, 6, 14, 4
fast_jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
XS = jr.normal(jr.key(1), (STEPS, INPUTS))
RESETS = {
    "no resets": jnp.zeros(STEPS, bool),
    "random resets": jnp.isin(jnp.arange(STEPS), jnp.array([2, 3, 11])),
    "first and last": jnp.isin(jnp.arange(STEPS), jnp.array([0, STEPS - 1])),
    "all resets": jnp.ones(STEPS, bool),
}


def jiggle(tree, seed=9, scale=0.3):
    """The same tree with noise in every array, so that no bias is zero and no gate at rest."""
    rng = np.random.default_rng(seed)
    noisy = lambda x: x + jnp.asarray(scale * rng.normal(size=x.shape), x.dtype)  # noqa: E731
    return jax.tree.map(noisy, tree)


CREATE = {
    "gru": GRU.create,
    "lstm": LSTM.create,
    "lstm-invariant": LSTM.create_invariant,
    "pointwise": Pointwise.create,
    "transformer": ft.partial(Transformer.create, context=50),
    "forgetful": ft.partial(Transformer.create, context=CONTEXT),
}
ENCODERS = {n: jiggle(c(jr.key(0), INPUTS, WIDTH)) for n, c in CREATE.items()}
every_encoder = pytest.mark.parametrize("name", ENCODERS)
every_reset = pytest.mark.parametrize("resets", RESETS)
TRANSFORMER, FORGETFUL = ENCODERS["transformer"], ENCODERS["forgetful"]


def _by_steps(encoder, state, xs, resets):
    return jax.lax.scan(lambda state, x: encoder.step(state, *x), state, (xs, resets))


unroll = fast_jit(lambda encoder, state, xs, resets: encoder.unroll(state, xs, resets))
by_steps = fast_jit(_by_steps)


def doubles(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


@every_encoder
@every_reset
def test_unroll_is_repeated_step(name, resets):
    """From a state that is not empty; more steps than a forgetful context holds."""
    encoder = ENCODERS[name]
    state, _ = unroll(encoder, encoder.start(), XS[::-1], RESETS["random resets"])
    args = encoder, state, XS, RESETS[resets]
    assert_close(unroll(*args), by_steps(*args), rtol=1e-5, atol=2e-6)


@every_encoder
@every_reset
def test_an_unroll_goes_on_where_another_ended(name, resets):
    encoder, resets, half = ENCODERS[name], RESETS[resets], STEPS // 2
    state, early = unroll(encoder, encoder.start(), XS[:half], resets[:half])
    state, late = unroll(encoder, state, XS[half:], resets[half:])
    whole = unroll(encoder, encoder.start(), XS, resets)
    assert_close((state, jnp.concatenate([early, late])), whole, rtol=1e-5, atol=2e-6)


@every_reset
def test_gru_is_its_definition(resets):
    gru, resets = ENCODERS["gru"], RESETS[resets]
    state = jr.normal(jr.key(2), (WIDTH,))
    weights = gru.input_weight, gru.hidden_weight, gru.bias, gru.candidate_bias
    outputs, last = naive.gru_unroll(np.asarray(XS), resets, doubles(state), *doubles(weights))
    assert_close(unroll(gru, state, XS, resets), (last, outputs))


@every_reset
@pytest.mark.parametrize("name", ["lstm", "lstm-invariant"])
def test_lstm_is_its_definition(name, resets):
    lstm, resets = ENCODERS[name], RESETS[resets]
    state = tuple(jr.normal(jr.key(2), (2, WIDTH)))
    weights = lstm.input_weight, lstm.hidden_weight, lstm.bias
    outputs, last = naive.lstm_unroll(np.asarray(XS), resets, doubles(state), *doubles(weights))
    assert_close(unroll(lstm, state, XS, resets), (last, outputs))


def twin_of(transformer):
    def block(b):
        a, first, second = b.attention, b.attention_norm, b.feed_norm
        return {
            **{"wq": a.query.weight, "bq": a.query.bias, "wk": a.key_weight, "bk": 0.0},
            **{"wv": a.value.weight, "bv": a.value.bias, "wo": a.output.weight},
            **{"bo": a.output.bias, "w_ff": b.feed.weight, "b_ff": b.feed.bias},
            **{"ln1_scale": first.scale, "ln1_offset": first.offset},
            **{"ln2_scale": second.scale, "ln2_offset": second.offset},
        }

    token, output = transformer.token, transformer.output
    ends = {"w_token": token.weight, "b_token": token.bias, "w_out": output.weight}
    blocks = [block(b) for b in transformer.blocks]
    return doubles(ends | {"b_out": output.bias, "blocks": blocks})


@every_reset
def test_transformer_is_its_definition(resets):
    _, outputs = unroll(TRANSFORMER, TRANSFORMER.start(), XS, RESETS[resets])
    expected = naive.transformer_unroll(np.asarray(XS), RESETS[resets], twin_of(TRANSFORMER))
    assert_close(outputs, expected, atol=5e-6)


def gru_gradient(run):
    """The derivative of a random function of all outputs and of the last state."""

    def loss(gru, state, xs, resets):
        last, hs = run(gru, state, xs, resets)
        return jnp.sum(hs * jr.normal(jr.key(3), hs.shape)) + jnp.sum(jnp.sin(last))

    gradient = jax.grad(loss, argnums=(0, 1, 2))
    return fast_jit(gradient), fast_jit(jax.vmap(gradient, in_axes=(None, 0, 0, 0)))


FAST, FAST_BATCH = gru_gradient(lambda gru, *args: gru.unroll(*args))
SLOW, SLOW_BATCH = gru_gradient(_by_steps)


@every_reset
def test_gru_derivative_is_that_of_its_steps(resets):
    args = ENCODERS["gru"], jr.normal(jr.key(4), (WIDTH,)), XS, RESETS[resets]
    assert_close(FAST(*args), SLOW(*args), rtol=1e-4, atol=1e-5)


@every_reset
def test_gru_derivative_is_that_of_its_steps_in_a_batch(resets):
    """Whose rows begin new tasks at different times."""
    state, xs = jr.normal(jr.key(4), (3, WIDTH)), jr.normal(jr.key(5), (3, STEPS, INPUTS))
    resets = jnp.stack([jnp.roll(RESETS[resets], i) for i in range(3)])
    args = ENCODERS["gru"], state, xs, resets
    assert_close(FAST_BATCH(*args), SLOW_BATCH(*args), rtol=1e-4, atol=1e-5)


def test_gru_derivative_is_the_limit_of_differences():
    resets = jnp.array([False, False, True, False])
    run = jax.jit(lambda gru, state, xs: gru.unroll(state, xs, resets))
    args = ENCODERS["gru"], jr.normal(jr.key(6), (WIDTH,)), XS[:4]
    check_grads(run, args, order=1, modes=["rev"], atol=2e-2, rtol=2e-2, eps=1e-2)


def test_attention_never_crosses_a_reset():
    resets = jnp.arange(STEPS) == 6
    other = XS.at[:6].set(100.0)
    for transformer in (TRANSFORMER, FORGETFUL):
        for run in (unroll, by_steps):
            a, b = (run(transformer, transformer.start(), x, resets) for x in (XS, other))
            np.testing.assert_array_equal(a[1][6:], b[1][6:])
            assert_close(a[0], b[0], rtol=0, atol=0)


def test_the_future_changes_no_output():
    resets, other = RESETS["random resets"], XS.at[7:].set(-3.0)
    for encoder in ENCODERS.values():
        a, b = (unroll(encoder, encoder.start(), x, resets)[1] for x in (XS, other))
        np.testing.assert_array_equal(a[:7], b[:7])


def test_a_full_context_forgets_the_oldest_step():
    """Two blocks of attention over 4 steps reach 6 steps back, not 7."""
    other, resets = XS.at[0].set(3.0), RESETS["no resets"]
    a, b = (unroll(FORGETFUL, FORGETFUL.start(), x, resets)[1] for x in (XS, other))
    reach = 2 * (CONTEXT - 1)
    assert bool((jnp.abs(a - b)[: reach + 1].max(axis=1) > 1e-5).all())
    np.testing.assert_array_equal(a[reach + 1 :], b[reach + 1 :])
