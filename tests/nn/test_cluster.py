"""The GRU's loops as one kernel each: what can be said without a GPU, and on one, that they are the definition."""

import functools as ft
import warnings

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.nn import GRU, cuda, gru_cluster
from splagger.nn import gru as gru_module
from splagger.nn.precision import FULL

hopper = pytest.mark.skipif(not gru_cluster.available(), reason="needs a Hopper GPU and nvcc")


def recur(gru, *args):
    weights = gru.input_weight, gru.hidden_weight, gru.bias, gru.candidate_bias
    return gru_cluster.recur(*weights, *args)


def differentiate(function, gru, state, xs, resets):
    """States, and the gradient of a function that weighs each of them differently."""

    def loss(gru, state, xs):
        hs = function(gru, state, xs, resets)
        return (hs * jnp.sin(jnp.arange(hs.size).reshape(hs.shape))).sum(), hs

    return jax.grad(loss, argnums=(0, 1, 2), has_aux=True)(gru, state, xs)


def sequences(runs, steps, rows, inputs):
    cells = jax.vmap(lambda key: GRU.create(key, inputs, 256))(jr.split(jr.key(0), runs))
    cells = jax.tree.map(lambda leaf: leaf + 0.05 * jr.normal(jr.key(1), leaf.shape), cells)
    state = jnp.tanh(jr.normal(jr.key(2), (runs, rows, 256)))
    return cells, state, jr.normal(jr.key(3), (runs, steps, rows, inputs))


def test_kernels_are_for_whole_blocks():
    assert gru_cluster.fits(700, 16, 256, 80) and gru_cluster.fits(100, 112, 256, 128)
    for sizes in ((700, 15, 256, 80), (700, 16, 512, 80), (700, 16, 256, 129), (9999, 16, 256, 80)):
        assert not gru_cluster.fits(*sizes)


def test_the_kernels_can_be_lowered_for_a_gpu():
    """Inputs are filled up to a size that the kernel knows; alone, states need no arguments to be kept."""
    args = jax.eval_shape(lambda: sequences(2, 5, 16, 90))
    resets = jnp.zeros((2, 5, 16), bool)
    lower = lambda f: jax.jit(jax.vmap(f)).trace(*args, resets).lower(lowering_platforms=("cuda",))  # noqa: E731
    whole = lower(ft.partial(differentiate, recur)).as_text()
    assert all(f"@{target}(" in whole for target in gru_cluster.TARGETS[1:])
    assert "tensor<2x5x16x128xf16>" in whole
    alone = lower(recur).as_text()
    assert f"@{gru_cluster.TARGETS[0]}(" in alone and gru_cluster.TARGETS[1] not in alone


def test_without_a_compiler_there_are_no_kernels(monkeypatch, tmp_path):
    source = tmp_path / "nothing.cu"
    source.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cuda, "find_compiler", lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not cuda.register(source, ("nothing",), "90a")
    monkeypatch.setattr(cuda, "find_compiler", lambda: "false")
    with pytest.warns(UserWarning, match=r"nothing\.cu cannot be used"):
        assert not cuda.register(source, ("nothing", "else"), "90a")


@hopper
@pytest.mark.parametrize("sizes", [(2, 60, 16, 80), (3, 131, 32, 96)])
@pytest.mark.parametrize("together", [True, False])
def test_on_a_hopper_gpu_they_are_the_definition(sizes, together):
    """Sequences that begin anew together, so that they are cut there, and each at its own time."""
    runs, steps, rows, _ = sizes
    flags = jr.bernoulli(jr.key(4), 0.05, (runs, steps, 1 if together else rows))
    resets = jnp.broadcast_to(flags, (runs, steps, rows))
    args = *sequences(*sizes), resets
    with jax.default_matmul_precision("float32"):
        plain = ft.partial(gru_module._recur, gru_module.Loops(FULL, False, False))
        exact = jax.jit(jax.vmap(ft.partial(differentiate, plain)))(*args)
    ours = jax.jit(jax.vmap(ft.partial(differentiate, recur)))(*args)
    for a, b in zip(*map(jax.tree.leaves, (ours, exact)), strict=True):
        assert np.linalg.norm(a - b) < 0.01 * np.linalg.norm(b)
