"""Split aggregation with a running maximum by CUDA kernels: on a Hopper GPU, they match the definition."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.aggregators import Max
from splagger.memory import split
from splagger.memory.split import SplitAggregation
from splagger.nn.gpu import split_max
from tests.nn.lowering import lowered

hopper = pytest.mark.skipif(not split_max.available(), reason="needs a Hopper GPU and nvcc")


def sequences(runs, steps, batch, width, skip):
    """Returns random (aggregates, encodings, resets); many encodings are equal, and many equal the floor."""
    es = jnp.round(2 * jr.normal(jr.key(0), (runs, steps, *batch, width))) / 2
    start = jnp.round(jr.normal(jr.key(1), (runs, *batch, width - skip)))
    return start, es, jr.bernoulli(jr.key(2), 0.1, (runs, steps, *batch))


def differentiate(unroll, start, es, resets):
    """Returns the gradients of a loss that weighs each number differently, and the results."""

    def loss(start, es):
        results = unroll(start, es, resets)
        weigh = lambda x: (x * jnp.sin(jnp.arange(x.size).reshape(x.shape))).sum()  # noqa: E731
        return sum(map(weigh, results)), results

    return jax.grad(loss, argnums=(0, 1), has_aux=True)(start, es)


@hopper
@pytest.mark.parametrize(
    "steps, batch, width, skip", [(700, (16,), 256, 128), (37, (3, 5), 300, 0)]
)
def test_on_a_hopper_gpu_the_kernels_match_the_definition(steps, batch, width, skip, monkeypatch):
    args = sequences(2, steps, batch, width, skip)
    kernels = ft.partial(split_max.unroll, skip, 0.0)
    result = jax.jit(jax.vmap(ft.partial(differentiate, kernels)))(*args)
    monkeypatch.setattr(split.split_max, "available", lambda: False)
    exact = SplitAggregation(Max(), width, skip).unroll
    exact = jax.jit(jax.vmap(ft.partial(differentiate, exact)))(*args)
    for a, b in zip(*map(jax.tree.leaves, (result, exact)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def program(width=64, skip=32, aggregator=None):
    args = jax.eval_shape(lambda: sequences(2, 6, (3,), width, skip))
    unroll = SplitAggregation(aggregator or Max(), width, skip).unroll
    return lowered(jax.vmap(ft.partial(differentiate, unroll)), *args)


def test_only_the_maximum_uses_the_kernels(monkeypatch):
    """The derivative needs one byte per number."""
    monkeypatch.setattr(split.cuda, "enabled", lambda: False)
    assert "splagger_split_max" not in program()
    monkeypatch.setattr(split.cuda, "enabled", lambda: True)
    monkeypatch.setattr(split.split_max, "available", lambda: True)
    text = program()
    assert all(f"@{target}(" in text for target in split_max.TARGETS[1:])
    assert "tensor<2x6x3x64xui8>" in text

    class Other(Max):
        """Any other aggregator, even a similar one."""

    assert "splagger_split_max" not in program(aggregator=Other())
