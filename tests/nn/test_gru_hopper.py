"""The GRU's CUDA kernels: their switch, sizes and lowering; on a Hopper GPU, they also match the definition."""

import functools as ft
import warnings

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.nn import GRU
from splagger.nn.gpu import cuda, gru_hopper, gru_kernel, gru_loops
from splagger.nn.gpu.number_types import FULL, HALF

hopper = pytest.mark.skipif(not gru_hopper.available(), reason="needs a Hopper GPU and nvcc")


def recur(gru, *args):
    return gru_hopper.recur(gru.weights, *args)


def recur_exactly(gru, *args):
    return gru_loops.recur(gru_loops.Loops(FULL, False, False), gru.weights, *args)


def differentiate(function, gru, state, xs, resets):
    """Returns the gradients of a loss that weighs each state differently, and the states."""

    def loss(gru, state, xs):
        hs = function(gru, state, xs, resets)
        return (hs * jnp.sin(jnp.arange(hs.size).reshape(hs.shape))).sum(), hs

    return jax.grad(loss, argnums=(0, 1, 2), has_aux=True)(gru, state, xs)


def sequences(runs, steps, rows, inputs):
    """Returns random (cells, states, inputs)."""
    cells = jax.vmap(lambda key: GRU.create(key, inputs, 256))(jr.split(jr.key(0), runs))
    cells = jax.tree.map(lambda leaf: leaf + 0.05 * jr.normal(jr.key(1), leaf.shape), cells)
    state = jnp.tanh(jr.normal(jr.key(2), (runs, rows, 256)))
    return cells, state, jr.normal(jr.key(3), (runs, steps, rows, inputs))


def test_kernels_need_whole_blocks():
    assert gru_hopper.fits(700, 16, 256, 80) and gru_hopper.fits(100, 112, 256, 128)
    for sizes in ((700, 15, 256, 80), (700, 16, 512, 80), (700, 16, 256, 129), (9999, 16, 256, 80)):
        assert not gru_hopper.fits(*sizes)


def test_the_kernels_can_be_lowered_for_a_gpu():
    """Inputs are padded to a size of the kernel. Without a derivative, no arguments are stored."""
    args = jax.eval_shape(lambda: sequences(2, 5, 16, 90))
    resets = jnp.zeros((2, 5, 16), bool)
    lower = lambda f: jax.jit(jax.vmap(f)).trace(*args, resets).lower(lowering_platforms=("cuda",))  # noqa: E731
    whole = lower(ft.partial(differentiate, recur)).as_text()
    assert all(f"@{target}(" in whole for target in gru_hopper.TARGETS[1:])
    assert "tensor<2x5x16x128xf16>" in whole
    forward = lower(recur).as_text()
    assert f"@{gru_hopper.TARGETS[0]}(" in forward and gru_hopper.TARGETS[1] not in forward


def test_without_a_compiler_kernels_are_not_available(monkeypatch, tmp_path):
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
def test_on_a_hopper_gpu_the_kernels_match_the_definition(sizes, together):
    """All sequences reset at the same steps, so that they are cut there, or each at its own steps."""
    runs, steps, rows, _ = sizes
    flags = jr.bernoulli(jr.key(4), 0.05, (runs, steps, 1 if together else rows))
    resets = jnp.broadcast_to(flags, (runs, steps, rows))
    args = *sequences(*sizes), resets
    with jax.default_matmul_precision("float32"):
        exact = jax.jit(jax.vmap(ft.partial(differentiate, recur_exactly)))(*args)
    result = jax.jit(jax.vmap(ft.partial(differentiate, recur)))(*args)
    for a, b in zip(*map(jax.tree.leaves, (result, exact)), strict=True):
        assert np.linalg.norm(a - b) < 0.01 * np.linalg.norm(b)


@pytest.fixture
def hopper_gpu(monkeypatch):
    """Pretends that the device is a Hopper GPU whose kernels are compiled."""
    monkeypatch.setattr(gru_loops, "matmul_types", lambda: HALF)
    for kernels in (gru_hopper, gru_kernel):
        monkeypatch.setattr(kernels, "available", lambda: True)


def chosen():
    gru = jax.eval_shape(lambda: GRU.create(jr.key(0), 80, 256))
    return gru_loops._choose(gru.weights, jnp.zeros((5, 16), bool))


@pytest.mark.parametrize("value", [None, "", "triton", "1"])
def test_the_kernels_are_off_by_default(value, hopper_gpu, monkeypatch):
    """A Hopper GPU uses the Triton kernels of the GRU, unless the variable is "hopper"."""
    monkeypatch.delenv("SPLAGGER_KERNELS", raising=False)
    if value is not None:
        monkeypatch.setenv("SPLAGGER_KERNELS", value)
    assert not cuda.enabled()
    assert chosen().func is gru_loops.recur
    assert chosen().args == (gru_loops.Loops(HALF, True, False),)


def test_the_kernels_can_be_switched_on(hopper_gpu, monkeypatch):
    monkeypatch.setenv("SPLAGGER_KERNELS", "hopper")
    assert cuda.enabled()
    assert chosen() is gru_hopper.recur


def test_a_cpu_ignores_the_switch(monkeypatch):
    """Nothing is compiled, and the lowered program is the same to the letter."""
    monkeypatch.setattr(cuda, "register", lambda *args: pytest.fail("a CUDA source was compiled"))
    args = jax.eval_shape(lambda: jax.tree.map(lambda x: x[0], sequences(1, 5, 16, 80)))

    def lower():
        unroll = jax.jit(lambda gru, *args: gru.unroll_batch(*args))  # a new function, traced again
        return unroll.lower(*args, jnp.zeros((5, 16), bool)).as_text()

    monkeypatch.delenv("SPLAGGER_KERNELS", raising=False)
    off = lower()
    monkeypatch.setenv("SPLAGGER_KERNELS", "hopper")
    assert lower() == off and "splagger_gru" not in off
