"""The memory: `unroll` equals repeated `step`, its size is fixed, and order matters where it should."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.aggregators import Sum, WeightedMean
from splagger.memory import SequenceModel, SplitAggregation
from splagger.methods import METHODS
from tests.close import assert_close

INPUTS, STEPS = 6, 9
XS = jr.uniform(jr.key(1), (STEPS, INPUTS), minval=-1.0, maxval=1.0)
NO_RESETS, SOME = jnp.zeros(STEPS, bool), jnp.asarray(np.isin(range(STEPS), (0, 4, 5, 7)))


def create(name, factor=1.0, context=1000):
    row = METHODS[name]
    options = {"encoder": row.encoder, "width": int(row.width * factor), "context": context}
    options |= {"aggregator": row.aggregator, "skip": row.skip, "bottleneck": row.bottleneck}
    return SequenceModel.create(jr.key(0), INPUTS, **options)


@ft.cache
def small(name):
    """Returns a narrow model of this method, with random weights and biases."""
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(lambda: create(name, factor=1 / 16, context=20))

    def fill(leaf):
        if leaf.ndim == 0:
            return jnp.float32(0.1)  # a temperature
        return jnp.asarray(rng.normal(size=leaf.shape) / leaf.shape[-1] ** 0.5, leaf.dtype)

    return jax.tree.map(fill, shapes)


start = jax.jit(lambda model: model.start())
unroll = jax.jit(lambda model, memory, xs, resets: model.unroll(memory, xs, resets))


@jax.jit
def by_steps(model, memory, xs, resets):
    return jax.lax.scan(lambda memory, x: model.step(memory, *x), memory, (xs, resets))


# name → size of encoder state, of aggregate, and of the projection's input (specification 3.2). A softmax
# also keeps its peak, besides numerator and denominator; a straight-through aggregator also keeps its sum.
SIZES = {
    "rnn": (256, 0, 256),
    "splagger": (256, 128, 256),
    "amrl": (256, 2 * 128, 256),
    "splagger-avg": (256, 129, 256),
    "splagger-avgmax": (256, 129, 256),
    "splagger-softmax": (256, 3 * 128, 256),
    "splagger-wsoftmax": (512, 3 * 128, 384),
    "splagger-wavg": (512, 256, 384),
    "splagger-nosplit": (256, 256, 256),
    "splagger-nornn": (0, 256, 256),
    "amrl-nornn": (0, 2 * 256, 256),
    "cnp": (0, 257, 256),
    "softmax-nornn": (0, 3 * 256, 256),
    "wsoftmax-nornn": (0, 3 * 256, 256),
    "pearl": (0, 24, 24),
    "pearl-vari": (0, 24, 24),
    "pearl-gru": (256, 24, 24),
    "memoryless": (0, 0, 256),
    "lstm": (512, 0, 256),
    "lstm-invinit": (512, 0, 256),
    "transformer": (2 * 16 * 1000 + 1, 0, 256),
    "mingru": (256, 0, 256),
    "splagger-mingru": (256, 128, 256),
    "amrl-mingru": (256, 2 * 128, 256),
    "lru": (2 * 256, 0, 256),
    "splagger-lru": (2 * 256, 128, 256),
    "amrl-lru": (2 * 256, 2 * 128, 256),
    "mlstm": (8 * (256 + 4), 0, 256),
    "splagger-mlstm": (8 * (256 + 4), 128, 256),
}


def floats(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def shapes(tree):
    return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)]


def test_the_table_of_sizes_has_every_method():
    assert set(SIZES) == {row.name for row in METHODS.values()}


@pytest.mark.parametrize("name", SIZES)
def test_memory_has_the_size_of_the_specification_at_any_horizon(name):
    def sizes(context):
        model = create(name, context=context)
        start = model.start()
        later, _ = model.step(start, jnp.zeros(INPUTS), False)
        return start, later, jnp.zeros(model.aggregation.output_size)

    start, later, mixed = jax.eval_shape(lambda: sizes(1000))
    assert (floats(start.encoder), floats(start.aggregate), mixed.size) == SIZES[name]
    assert start.output.shape == (24,)
    assert shapes(start) == shapes(later), "a step must not change the memory's shape"
    longer, *_ = jax.eval_shape(lambda: sizes(2000))
    assert (shapes(start) == shapes(longer)) == (name != "transformer")


@pytest.mark.parametrize("name", ["splagger", "splagger-wsoftmax", "transformer"])
def test_unroll_equals_repeated_step_with_resets(name):
    model = small(name)
    args = model, start(model), XS, SOME
    last, outputs = unroll(*args)
    assert_close((last, outputs), by_steps(*args), rtol=1e-5, atol=2e-6)
    assert shapes(last) == shapes(start(model))
    args = model, last, XS, SOME[::-1]
    assert_close(unroll(*args), by_steps(*args), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["splagger", "cnp", "pearl", "rnn", "transformer"])
def test_an_empty_memory_outputs_that_of_one_zero_input_and_stays_empty(name):
    model = small(name)
    empty, zeros = start(model), jnp.zeros((1, INPUTS))
    after, outputs = unroll(model, empty, zeros, jnp.zeros(1, bool))
    assert_close(empty.output, outputs[0])
    assert_close(empty.encoder, model.encoder.start())
    assert_close(empty.aggregate, model.aggregation.start())
    if name in ("cnp", "pearl"):  # the count of encodings, the precision
        assert float(jnp.abs(after.aggregate[1] - empty.aggregate[1]).max()) > 0.1


def test_an_empty_memory_bypasses_the_embedding():
    model = small("splagger")
    embedded = eqx.tree_at(lambda m: m.embedding, model, lambda x: x + 1.0)
    np.testing.assert_array_equal(embedded.start().output, model.start().output)
    stepped = [m.step(m.start(), jnp.zeros(INPUTS), False)[1] for m in (model, embedded)]
    assert float(jnp.abs(stepped[0] - stepped[1]).max()) > 1e-3


def test_the_first_half_bypasses_the_aggregator():
    split = SplitAggregation(Sum(), width=4, skip=2)
    es = jnp.array([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0], [5.0, 6.0, 7.0, 8.0]])
    last, mixed = split.unroll(split.start(), es, jnp.array([False, False, True]))
    assert mixed.tolist() == [[1, 2, 3, 4], [10, 20, 33, 44], [5, 6, 7, 8]]
    assert last.tolist() == [7, 8]
    assert split.output_size == 4
    assert SplitAggregation(WeightedMean(), width=512, skip=256).output_size == 384


def test_skipping_all_neurons_gives_the_plain_encoder():
    model = small("rnn")
    _, outputs = unroll(model, start(model), XS, SOME)
    plain = jax.jit(
        lambda m: jax.vmap(m.projection)(m.encoder.unroll(m.encoder.start(), XS, SOME)[1])
    )
    assert_close(outputs, plain(model))


def change_by_order(name):
    """Returns the relative change of the last output when the inputs are reordered."""
    model = small(name)
    orders = XS, jr.permutation(jr.key(2), XS), XS[::-1]
    ys = [unroll(model, start(model), xs, NO_RESETS)[1][-1] for xs in orders]
    return max(np.linalg.norm(y - ys[0]) / np.linalg.norm(ys[0]) for y in ys[1:])


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if m.encoder == "pointwise"])
def test_pointwise_methods_ignore_the_order(name):
    assert change_by_order(name) < 1e-6


@pytest.mark.parametrize("name", ["rnn", "splagger", "splagger-wsoftmax", "mingru", "lru", "mlstm"])
def test_recurrent_methods_depend_on_the_order(name):
    assert change_by_order(name) > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "grru"}, "no encoder 'grru'; did you mean gru?"),
        ({"skip": 1.5}, "skip must be the fraction .* got 1.5"),
        ({"skip": -0.1}, "skip must be the fraction .* got -0.1"),
        ({"width": 0}, "width must be at least 1, got 0"),
        ({"output_size": 0}, "output_size must be at least 1"),
        ({"input_size": 0}, "input_size must be at least 1"),
        ({"encoder": "transformer", "context": 0}, "context must be at least 1 step, got 0"),
        ({"encoder": "pointwise", "aggregator": WeightedMean(), "width": 10}, "Mean .* 5 is odd"),
    ],
)
def test_an_invalid_option_is_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        SequenceModel.create(jr.key(0), **({"input_size": INPUTS, "width": 8} | options))


def test_an_input_of_the_wrong_shape_is_rejected():
    model = small("splagger")
    with pytest.raises(
        ValueError, match=r"inputs of this memory must have shape \(6,\), got \(5,\)"
    ):
        model.step(start(model), jnp.zeros(5), False)
    with pytest.raises(
        ValueError, match=r"inputs of this memory must have shape \(6,\), got \(7,\)"
    ):
        model.unroll(start(model), jnp.zeros((3, 7)), jnp.zeros(3, bool))


@pytest.mark.parametrize("name", ["splagger", "pearl", "transformer", "splagger-mlstm"])
def test_a_batch_of_empty_memories_unrolls_like_separate_ones(name):
    model, resets = small(name), jnp.stack([NO_RESETS, SOME], axis=1)
    xs = jnp.stack([XS, -XS], axis=1)
    last, outputs = model.unroll(model.start(2), xs, resets)
    for i, (one, flags) in enumerate(zip((XS, -XS), (NO_RESETS, SOME), strict=True)):
        memory, expected = model.unroll(model.start(), one, flags)
        assert_close(outputs[:, i], expected)
        assert_close(last.output[i], memory.output)
    start = model.start(2, 3)
    assert start.output.shape == (2, 3, model.output_size)
    assert_close(start.output[1, 2], model.start().output)


WRONG_AXES = (
    ((), XS, False, r"resets need a time axis, got shape \(\)"),
    ((), XS, NO_RESETS[:3], r"resets of shape \(3,\) need inputs that begin with these axes, got"),
    ((), XS, jnp.zeros((STEPS, 2), bool), r"resets of shape \(9, 2\) need inputs that begin"),
    ((), jnp.zeros((STEPS, 2, INPUTS)), jnp.zeros((STEPS, 2), bool), r"start\(2\) has them"),
    ((2,), XS, NO_RESETS, r"the memory has batch axes \(2,\), but resets and inputs have \(\)"),
    ((), XS, [False] * 3, r"resets of shape \(3,\) need inputs that begin with these axes"),
)


@pytest.mark.parametrize("batch, xs, resets, message", WRONG_AXES)
def test_axes_that_do_not_fit_are_named(batch, xs, resets, message):
    model = SequenceModel.create(jr.key(0), INPUTS, width=8)
    with pytest.raises(ValueError, match=message):
        model.unroll(model.start(*batch), xs, resets)
