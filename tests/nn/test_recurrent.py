"""Sequence encoders: `unroll` equals repeated `step`, and every cell matches its definition."""

import functools as ft
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.test_util import check_grads

from splagger.memory import Pointwise
from splagger.nn import GRU, LRU, LSTM, MLSTM, MinGRU, Transformer
from splagger.nn.gpu import gru_kernel, gru_loops, lstm_loops, recurrence
from splagger.nn.gpu.number_types import FULL, HALF
from tests.close import assert_close
from tests.parity import numpy_models as naive

INPUTS, WIDTH, STEPS, CONTEXT = 5, 6, 10, 4
XS = jr.normal(jr.key(1), (STEPS, INPUTS))
FLAGGED = {"no": [], "some": [2, 3, 8], "first and last": [0, STEPS - 1], "all": range(STEPS)}
RESETS = {name: jnp.asarray(np.isin(range(STEPS), list(at))) for name, at in FLAGGED.items()}


def randomized(create, scale=0.4):
    """Returns what `create` returns, with all arrays random: no bias is zero."""
    rng, shapes = np.random.default_rng(0), jax.eval_shape(lambda: create(jr.key(0), INPUTS, WIDTH))
    return jax.tree.map(lambda s: jnp.asarray(scale * rng.normal(size=s.shape), s.dtype), shapes)


ENCODERS = {
    "gru": randomized(GRU.create),
    "lstm": randomized(LSTM.create),
    "pointwise": randomized(Pointwise.create),
    "transformer": randomized(ft.partial(Transformer.create, context=50)),
    "short context": randomized(ft.partial(Transformer.create, context=CONTEXT)),
    "mingru": randomized(MinGRU.create),
    "lru": randomized(LRU.create),
    "mlstm": randomized(MLSTM.create),
}
TRANSFORMER, SHORT_CONTEXT = ENCODERS["transformer"], ENCODERS["short context"]
every_encoder, every_reset = map(pytest.mark.parametrize, ["name", "resets"], [ENCODERS, RESETS])


def _by_steps(encoder, state, xs, resets):
    return jax.lax.scan(lambda state, x: encoder.step(state, *x), state, (xs, resets))


unroll = jax.jit(lambda encoder, state, xs, resets: encoder.unroll(state, xs, resets))
by_steps = jax.jit(_by_steps)


def doubles(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


@every_encoder
@every_reset
def test_unroll_equals_repeated_step(name, resets):
    """From a nonempty state, over more steps than the shorter context holds."""
    encoder = ENCODERS[name]
    state, _ = unroll(encoder, encoder.start(), XS[::-1], RESETS["some"])
    args = encoder, state, XS, RESETS[resets]
    assert_close(unroll(*args), by_steps(*args), rtol=1e-5, atol=2e-6)


@every_encoder
@every_reset
def test_an_unroll_continues_where_another_ended(name, resets):
    encoder, resets, half = ENCODERS[name], RESETS[resets], STEPS // 2
    state, early = unroll(encoder, encoder.start(), XS[:half], resets[:half])
    state, late = unroll(encoder, state, XS[half:], resets[half:])
    whole = unroll(encoder, encoder.start(), XS, resets)
    assert_close((state, jnp.concatenate([early, late])), whole, rtol=1e-5, atol=2e-6)


def test_pointwise_matches_its_definition():
    layer = doubles(ENCODERS["pointwise"].linear)
    expected = [np.tanh(naive.linear(x, layer.weight, layer.bias)) for x in doubles(XS)]
    assert_close(unroll(ENCODERS["pointwise"], (), XS, RESETS["no"])[1], np.array(expected))


@every_reset
def test_gru_matches_its_definition(resets):
    gru, resets = ENCODERS["gru"], RESETS[resets]
    state = jr.normal(jr.key(2), (WIDTH,))
    weights = gru.input_weight, gru.hidden_weight, gru.bias, gru.candidate_bias
    outputs, last = naive.gru_unroll(np.asarray(XS), resets, doubles(state), *doubles(weights))
    assert_close(unroll(gru, state, XS, resets), (last, outputs))


BATCH = 3
XS_BATCH = jr.normal(jr.key(5), (STEPS, BATCH, INPUTS))
RESETS_BATCH = jr.bernoulli(jr.key(6), 0.2, (STEPS, BATCH))


@every_encoder
def test_a_batch_of_sequences_equals_each_sequence_alone(name):
    encoder = ENCODERS[name]
    state = jax.vmap(lambda x: unroll(encoder, encoder.start(), x, RESETS["some"])[0])(
        jr.normal(jr.key(7), (BATCH, STEPS, INPUTS))
    )
    args = state, XS_BATCH, RESETS_BATCH
    batch = jax.jit(lambda *args: encoder.unroll_batch(*args))(*args)
    each = jax.vmap(ft.partial(unroll, encoder), in_axes=(0, 1, 1), out_axes=(0, 1))(*args)
    assert_close(batch, each, rtol=1e-5, atol=2e-6)


class Form(NamedTuple):
    """One way to unroll a cell on a GPU; `run` returns (last state, all outputs)."""

    cell: str
    run: Callable
    tolerance: float = 1e-5


def gru_form(types, tolerance=1e-5, kernels=False):
    loops = gru_loops.Loops(types, kernels, interpret=kernels)

    def run(gru, *args):
        hs = gru_loops.recur(loops, gru.weights, *args)
        return hs[-1], hs

    return Form("gru", run, tolerance)


def lstm_form(types, tolerance=1e-5):
    def run(lstm, *args):
        hs, c = lstm_loops.recur(types, lstm.weights, *args)
        return (hs[-1], c), hs

    return Form("lstm", run, tolerance)


FORMS = {
    "gru, float32": gru_form(FULL),
    "gru, half": gru_form(HALF, 0.02),
    "gru, kernels, float32": gru_form(FULL, kernels=True),
    "gru, kernels, half": gru_form(HALF, 0.02, kernels=True),
    "lstm, float32": lstm_form(FULL),
    "lstm, half": lstm_form(HALF, 0.02),
}
LOOPS = {"gru": gru_loops, "lstm": lstm_loops}


def by_definition(cell, *args):
    """Unrolls as on a CPU."""
    return cell.unroll_batch(*args)


def as_on_a_gpu(cell, *args):
    loops = LOOPS["gru" if isinstance(cell, GRU) else "lstm"]
    return loops.unroll(cell.weights, *args)


def states(name, *batch):
    """Returns random states of the cell."""
    leaves, tree = jax.tree.flatten(ENCODERS[name].start())
    drawn = [jr.normal(jr.key(i), (*batch, *leaf.shape)) for i, leaf in enumerate(leaves)]
    return tree.unflatten(drawn)


@ft.partial(jax.jit, static_argnums=0)
def differentiate(run, cell, state, xs, resets):
    """Returns the states, and the gradients of a loss that weighs each state differently."""
    weights = jr.normal(jr.key(8), (*resets.shape, WIDTH))

    def loss(cell, state, xs):
        last, hs = run(cell, state, xs, resets)
        last_terms = sum(jnp.sin(s).sum() for s in jax.tree.leaves(last))
        return (hs * weights).sum() + last_terms, (last, hs)

    return jax.grad(loss, argnums=(0, 1, 2), has_aux=True)(cell, state, xs)


@pytest.fixture
def small_kernels(monkeypatch):
    """Makes each kernel program handle few rows and columns, so that a small test has several."""
    monkeypatch.setattr(gru_kernel, "ROWS", 2)
    monkeypatch.setattr(gru_kernel, "COLUMNS", 2)


@pytest.mark.parametrize("resets", ["some", "first and last"])
@pytest.mark.parametrize("name", FORMS)
def test_the_unroll_for_gpus_matches_its_definition(name, resets, small_kernels):
    """Compares states and gradients, with a tolerance relative to the largest number of each array."""
    form = FORMS[name]
    resets = jnp.stack([jnp.roll(RESETS[resets], i) for i in range(4)], axis=1)
    args = ENCODERS[form.cell], states(form.cell, 4), jr.normal(jr.key(5), (STEPS, 4, INPUTS))
    both = [differentiate(run, *args, resets) for run in (form.run, by_definition)]
    for rounded, exact in zip(*map(jax.tree.leaves, both), strict=True):
        assert rounded.dtype == jnp.float32
        scale = np.abs(exact).max()
        np.testing.assert_allclose(rounded / scale, exact / scale, atol=form.tolerance)


@ft.partial(jax.jit, static_argnums=0)
def gradients_of_runs(run, cells, states, xs, resets):
    def loss(cell, state, xs):
        return jnp.square(run(cell, state, xs, resets)[1]).sum()

    return jax.vmap(jax.grad(loss))(cells, states, xs)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * ("kernels" in name))
        for name in FORMS
        if "half" not in name
    ],
)
def test_the_unroll_for_gpus_mapped_over_runs(name, small_kernels):
    """Each run has its own weights, and loops that write in place must not mix them up."""
    form = FORMS[name]
    cells = jax.tree.map(lambda leaf: jnp.stack([leaf, 0.7 * leaf]), ENCODERS[form.cell])
    args = cells, states(form.cell, 2, 4), jr.normal(jr.key(5), (2, STEPS, 4, INPUTS))
    resets = jr.bernoulli(jr.key(6), 0.2, (STEPS, 4))

    both = [gradients_of_runs(run, *args, resets) for run in (form.run, by_definition)]
    assert_close(*both, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("name", LOOPS)
def test_the_unroll_for_gpus_takes_any_batch_shape(name, batch):
    xs, resets = jr.normal(jr.key(5), (STEPS, *batch, INPUTS)), (STEPS, *batch)
    args = ENCODERS[name], states(name, *batch), xs, jr.bernoulli(jr.key(6), 0.2, resets)
    both = [differentiate(run, *args) for run in (as_on_a_gpu, by_definition)]
    assert_close(*both, rtol=1e-4, atol=1e-5)


def test_kernels_need_a_gpu_that_can_run_them(monkeypatch):
    assert not gru_kernel.available()
    monkeypatch.setattr(gru_kernel, "on_gpu", lambda: True)
    for capability, expected in (("7.5", False), ("8.0", True), ("9.0", True), ("gfx90a", False)):
        device = SimpleNamespace(compute_capability=capability)
        monkeypatch.setattr(gru_kernel.jax, "local_devices", lambda device=device: [device])
        assert gru_kernel.available() == expected


def test_kernels_need_whole_blocks():
    assert gru_kernel.fits(16, 512) and gru_kernel.fits(32, 64)
    assert not any(
        gru_kernel.fits(*size)
        for size in ((15, 256), (112, 256), (16, 250), (16, 96), (16, 16), (16, 1024))
    )


@pytest.mark.parametrize("name", LOOPS)
def test_a_prepared_cell_steps_the_same(name, monkeypatch):
    cell, state = ENCODERS[name], states(name)
    assert_close(cell.prepared(), cell, rtol=0, atol=0)  # on a CPU there is nothing to prepare
    monkeypatch.setattr(recurrence, "matmul_types", lambda: HALF)
    prepared = cell.prepared()
    assert prepared.hidden_weight.dtype == jnp.float16
    for reset in (False, True):
        after, expected = prepared.step(state, XS[0], reset), cell.step(state, XS[0], reset)
        assert_close(after, expected, rtol=0, atol=2e-3)


@every_reset
def test_lstm_matches_its_definition(resets):
    lstm, resets = ENCODERS["lstm"], RESETS[resets]
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

    params = {"blocks": [block(b) for b in transformer.blocks]}
    for name, layer in (("token", transformer.token), ("out", transformer.output)):
        params |= {f"w_{name}": layer.weight, f"b_{name}": layer.bias}
    return doubles(params)


@every_reset
def test_transformer_matches_its_definition(resets):
    _, outputs = unroll(TRANSFORMER, TRANSFORMER.start(), XS, RESETS[resets])
    expected = naive.transformer_unroll(np.asarray(XS), RESETS[resets], twin_of(TRANSFORMER))
    assert_close(outputs, expected, atol=5e-6)


@pytest.mark.parametrize("name", LOOPS)
@every_reset
def test_the_derivative_equals_that_of_single_steps(name, resets):
    """By every parameter, input and initial state; rows are reset at different times."""
    resets = jnp.stack([jnp.roll(RESETS[resets], i) for i in range(3)], axis=1)
    args = ENCODERS[name], states(name, 3), jr.normal(jr.key(5), (STEPS, 3, INPUTS)), resets

    def by_steps(cell, *args):
        return jax.vmap(ft.partial(_by_steps, cell), in_axes=(0, 1, 1), out_axes=(0, 1))(*args)

    both = [differentiate(run, *args) for run in (as_on_a_gpu, by_steps)]
    assert_close(*both, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LOOPS)
def test_the_derivative_matches_finite_differences(name):
    resets = jnp.array([False, False, True, False])
    run = jax.jit(lambda cell, *args: as_on_a_gpu(cell, *args, resets))
    args = ENCODERS[name], states(name), XS[:4]
    check_grads(run, args, order=1, modes=["rev"], atol=2e-2, rtol=2e-2, eps=1e-2)


def test_attention_never_crosses_a_reset():
    resets = jnp.arange(STEPS) == 6
    other = XS.at[:6].set(100.0)
    for transformer in (TRANSFORMER, SHORT_CONTEXT):
        for run in (unroll, by_steps):
            a, b = (run(transformer, transformer.start(), x, resets) for x in (XS, other))
            np.testing.assert_array_equal(a[1][6:], b[1][6:])
            assert_close(a[0], b[0], rtol=0, atol=0)


def test_outputs_do_not_depend_on_later_inputs():
    resets, other = RESETS["some"], XS.at[7:].set(-3.0)
    for encoder in ENCODERS.values():
        a, b = (unroll(encoder, encoder.start(), x, resets)[1] for x in (XS, other))
        np.testing.assert_array_equal(a[:7], b[:7])


def test_a_full_context_forgets_the_oldest_step():
    """Two attention blocks over 4 steps see 6 steps back, not 7."""
    other, resets = XS.at[0].set(3.0), RESETS["no"]
    a, b = (unroll(SHORT_CONTEXT, SHORT_CONTEXT.start(), x, resets)[1] for x in (XS, other))
    assert bool((jnp.abs(a - b)[:7].max(axis=1) > 1e-5).all())
    np.testing.assert_array_equal(a[7:], b[7:])


def test_invariant_lstm_starts_as_a_running_sum():
    """Input and forget gates are 1 - 1e-4 for every input and state: the order hardly matters."""
    args = jr.key(0), INPUTS, WIDTH
    invariant, ordinary = LSTM.create_invariant(*args), LSTM.create(*args)
    hidden = jr.normal(jr.key(1), (STEPS, WIDTH)) @ invariant.hidden_weight.T
    gates = XS @ invariant.input_weight.T + hidden + invariant.bias[None]
    assert_close(jax.nn.sigmoid(gates[:, : 2 * WIDTH]), np.full((STEPS, 2 * WIDTH), 1 - 1e-4), 1e-6)

    def cells(lstm):
        return [unroll(lstm, lstm.start(), x, RESETS["no"])[0][1] for x in (XS, XS[::-1])]

    bound = 1e-4 * STEPS**2  # each candidate decays by 1e-4 per step
    total = jnp.tanh(gates[:, 2 * WIDTH : 3 * WIDTH]).sum(axis=0)
    assert_close(cells(invariant), [total, total], rtol=0, atol=bound)
    assert float(jnp.abs(jnp.subtract(*cells(ordinary))).max()) > 10 * bound


@pytest.mark.parametrize("create", [GRU.create, LSTM.create])
@pytest.mark.parametrize("inputs", [5, 40])
def test_recurrent_weights_start_orthogonal_and_biases_zero(create, inputs):
    cell = jax.jit(create, static_argnums=(1, 2))(jr.key(0), inputs, WIDTH)
    for weight in (cell.input_weight, cell.hidden_weight):
        tall = weight if weight.shape[0] >= weight.shape[1] else weight.T
        assert_close(tall.T @ tall, np.eye(tall.shape[1]), atol=1e-5)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(cell) if leaf.ndim == 1)
