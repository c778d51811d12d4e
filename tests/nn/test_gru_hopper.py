"""The GRU's CUDA kernels: their switch, sizes and lowering; on a Hopper GPU, they also match the definition."""

import functools as ft
import itertools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.errors import SettingError
from splagger.nn import GRU
from splagger.nn import gru as gru_module
from splagger.nn.gpu import cuda, gru_hopper, gru_kernel, gru_loops
from splagger.nn.gpu.number_types import FULL, HALF
from splagger.nn.gru import ActingGRU
from tests.nn.lowering import lowered

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
    whole = lowered(jax.vmap(ft.partial(differentiate, recur)), *args, resets)
    assert all(f"@{target}(" in whole for target in gru_hopper.TARGETS[1:3])
    assert "tensor<2x5x16x128xf16>" in whole
    forward = lowered(jax.vmap(recur), *args, resets)
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


@hopper
@pytest.mark.parametrize("inputs, rows", [(80, 16), (90, 20)])
def test_on_a_hopper_gpu_a_step_matches_the_definition(inputs, rows):
    cells, state, xs = sequences(3, 1, rows, inputs)
    with jax.default_matmul_precision("float32"):
        exact = jax.vmap(lambda cell, h, x: jax.vmap(lambda h, x: cell.step(h, x, False)[0])(h, x))
        exact = jax.jit(exact)(cells, state, xs[:, 0])
    act = lambda cell, h, x: jax.vmap(gru_hopper.Step.create(cell.weights))(h, x)  # noqa: E731
    result = jax.jit(jax.vmap(act))(cells, state, xs[:, 0])
    assert np.linalg.norm(result - exact) < 0.002 * np.linalg.norm(exact)


@hopper
@pytest.mark.parametrize("inputs", [80, 90])
def test_on_a_hopper_gpu_steps_and_loop_compute_the_same_bits(inputs):
    """The first update of a rollout starts with exactly the states that acted."""
    cells, state, xs = sequences(3, 50, 16, inputs)
    resets = jr.bernoulli(jr.key(4), 0.05, (3, 50, 16))

    def act(cell, state, xs, resets):
        step = jax.vmap(gru_hopper.Step.create(cell.weights))

        def one(h, x):
            x, reset = x
            h = step(jnp.where(reset[:, None], 0.0, h), x)
            return h, h

        return jax.lax.scan(one, state, (xs, resets))[1]

    acted = jax.jit(jax.vmap(act))(cells, state, xs, resets)
    updated = jax.jit(jax.vmap(recur))(cells, state, xs, resets)
    np.testing.assert_array_equal(acted, updated)


def test_weights_of_a_step_have_the_documented_order():
    """Each number is where `one_step` of gru_hopper.cu reads it."""
    weight = np.random.default_rng(0).normal(size=(3 * 256, 336)).astype(np.float32)
    ordered = np.asarray(gru_hopper._for_threads(jnp.asarray(weight)))
    for gate, neuron, k in itertools.product(range(3), range(0, 256, 5), range(336)):
        word = 6 * (k // 16) + 2 * gate + k % 16 // 8
        place = neuron // 8, word // 4, neuron % 8, k % 8 // 2, word % 4, k % 2
        assert ordered[place] == weight[256 * gate + neuron, k]


def test_environments_share_one_call_per_step():
    """Rows are padded to 16, and each run's weights are given once."""
    cells, state, xs = jax.eval_shape(lambda: sequences(2, 1, 10, 90))
    act = lambda cell, h, x: jax.vmap(gru_hopper.Step.create(cell.weights))(h, x[0])  # noqa: E731
    text = lowered(jax.vmap(act), cells, state, xs)
    (call,) = [line for line in text.splitlines() if "@splagger_gru_step" in line]
    assert "tensor<2x16x128xf16>" in call and "tensor<2x32x36x8x4x4x2xf16>" in call


@pytest.fixture
def hopper_gpu(monkeypatch):
    """Pretends that the device is a Hopper GPU whose kernels are compiled."""
    monkeypatch.setattr(gru_loops, "matmul_types", lambda: HALF)
    for module in (cuda, gru_kernel):
        monkeypatch.setattr(module, "on_gpu", lambda: True)
    monkeypatch.setattr(cuda, "is_hopper", lambda: True)
    monkeypatch.setattr(cuda, "find_compiler", lambda: "nvcc")
    monkeypatch.setattr(gru_hopper, "available", lambda: True)
    monkeypatch.delenv("SPLAGGER_KERNELS", raising=False)


def chosen() -> Any:
    gru = jax.eval_shape(lambda: GRU.create(jr.key(0), 80, 256))
    return gru_loops._choose(gru.weights, jnp.zeros((5, 16), bool))


@pytest.mark.parametrize("value", [None, "", "auto", "on"])
def test_a_hopper_gpu_with_a_compiler_uses_the_kernels(value, hopper_gpu, monkeypatch):
    if value is not None:
        monkeypatch.setenv("SPLAGGER_KERNELS", value)
    assert cuda.enabled()
    assert chosen() is gru_hopper.recur
    monkeypatch.setattr(gru_module, "matmul_types", lambda: HALF)
    assert isinstance(GRU.create(jr.key(0), 80, 256).prepared(), ActingGRU)
    assert type(GRU.create(jr.key(0), 80, 128).prepared()) is GRU


def test_the_kernels_can_be_switched_off(hopper_gpu, monkeypatch):
    """Then XLA does everything: the GRU's steps do not use Triton either."""
    monkeypatch.setenv("SPLAGGER_KERNELS", "off")
    assert not cuda.enabled() and not gru_kernel.available()
    assert chosen().args == (gru_loops.Loops(HALF, False, False),)


@pytest.mark.parametrize("missing", ["find_compiler", "is_hopper", "triton"])
def test_other_gpus_use_fewer_kernels(missing, hopper_gpu, monkeypatch):
    """Without the compiler, or on another GPU, Triton takes the GRU's steps if JAX still has it."""
    monkeypatch.setattr(cuda, "find_compiler", lambda: None)
    if missing == "is_hopper":
        monkeypatch.setattr(cuda, "is_hopper", lambda: False)
    if missing == "triton":
        monkeypatch.setattr(gru_kernel, "triton", None)
    device = type("Device", (), {"compute_capability": "9.0"})
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert not cuda.enabled()
    assert chosen().args == (gru_loops.Loops(HALF, missing != "triton", False),)


def test_an_unknown_value_of_the_switch_is_refused(monkeypatch):
    monkeypatch.setenv("SPLAGGER_KERNELS", "hoper")
    with pytest.raises(
        SettingError, match="SPLAGGER_KERNELS must be one of auto, on, off; got 'hoper'"
    ):
        cuda.enabled()


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="needs a machine without GPU")
def test_a_cpu_ignores_the_switch(monkeypatch):
    """Nothing is compiled, and the lowered program is the same to the letter."""
    monkeypatch.setattr(cuda, "register", lambda *args: pytest.fail("a CUDA source was compiled"))
    args = jax.eval_shape(lambda: jax.tree.map(lambda x: x[0], sequences(1, 5, 16, 80)))

    def lower():
        unroll = jax.jit(lambda gru, *args: gru.unroll_batch(*args))  # a new function, traced again
        return unroll.lower(*args, jnp.zeros((5, 16), bool)).as_text()

    monkeypatch.setenv("SPLAGGER_KERNELS", "off")
    off = lower()
    monkeypatch.setenv("SPLAGGER_KERNELS", "on")
    assert lower() == off and "splagger_gru" not in off
