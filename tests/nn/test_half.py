"""Half precision as on GPUs: number types, whole updates, and kernels that can be lowered."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import MetaEnv, TMaze
from splagger.memory import EmbeddingSizes
from splagger.network import Network
from splagger.nn import GRU, Linear, layers
from splagger.nn import gru as gru_module
from splagger.nn import lstm as lstm_module
from splagger.nn.gpu import gru_loops, number_types
from splagger.nn.gpu.number_types import FULL, HALF
from splagger.ppo.train import update
from tests.nn.lowering import lowered
from tests.ppo.probe_envs import TUNABLES, random_state, tiny


def test_gpus_use_half_precision_unless_configured_otherwise(monkeypatch):
    assert number_types.matmul_types() == FULL
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert number_types.matmul_types() == HALF
    with jax.default_matmul_precision("float32"):
        assert number_types.matmul_types() == FULL
    with jax.default_device(jax.devices("cpu")[0]):
        assert number_types.matmul_types() == FULL


def test_numbers_outside_the_range_of_float16_are_clipped():
    """A memory takes rewards and observations without normalization, so they may be large."""
    x = jnp.array([1e5, -1e9, 3.0, 1e-3])
    np.testing.assert_array_equal(number_types.rounded(x, jnp.float16)[:3], [65504, -65504, 3])
    assert number_types.rounded(x, jnp.float16).dtype == jnp.float16
    np.testing.assert_array_equal(number_types.rounded(x, jnp.float32), x)
    loops = gru_loops.Loops(HALF, kernels=False, interpret=False)
    gru, xs = GRU.create(jr.key(0), 4, 8), jnp.broadcast_to(x, (3, 2, 4))
    loss = lambda gru: gru_loops.recur(  # noqa: E731
        loops, gru.weights, jnp.zeros((2, 8)), xs, jnp.zeros((3, 2), bool)
    ).sum()
    value, grads = jax.jit(jax.value_and_grad(loss))(gru)
    assert np.isfinite(value) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads))


@pytest.mark.parametrize("inputs", [5, 42, 200])
def test_acting_and_learning_round_a_layer_alike(inputs, monkeypatch):
    """Outputs are equal to the last bits of float32, and derivatives are those of a plain product."""
    layer, x = Linear.create(jr.key(0), inputs, 7), jr.normal(jr.key(1), (9, inputs))
    total = lambda call: lambda layer, x: jnp.sum(jnp.sin(jax.vmap(lambda x: call(layer, x))(x)))  # noqa: E731
    plain = jax.grad(total(lambda layer, x: layer.weight @ x + layer.bias), argnums=(0, 1))
    expected = plain(layer, x)
    for module in (number_types, layers):
        monkeypatch.setattr(module, "matmul_types", lambda: HALF)
    acted = jax.vmap(layer.prepared())(x)
    np.testing.assert_allclose(acted, jax.vmap(layer)(x), rtol=1e-5, atol=1e-6)
    grads = jax.grad(total(lambda layer, x: layer(x)), argnums=(0, 1))(layer, x)
    for a, b in zip(*map(jax.tree.leaves, (grads, expected)), strict=True):
        assert np.linalg.norm(a - b) < 0.005 * np.linalg.norm(b)


def test_a_prepared_custom_layer_keeps_its_class():
    class Doubled(Linear):
        def __call__(self, x):
            return 2 * super().__call__(x)

    layer = Doubled(jnp.ones((2, 64)), jnp.zeros(2))
    np.testing.assert_array_equal(layer.prepared()(jnp.ones(64)), [128, 128])


@pytest.mark.parametrize(
    "name", ["splagger", *(pytest.param(n, marks=pytest.mark.slow) for n in ("pearl", "lstm"))]
)
def test_an_update_in_half_precision(name, monkeypatch):
    """The acting agent is rounded, the training state is not; both are the same policy up to rounding."""
    for module in ("gru_loops", "lstm_loops", "recurrence"):
        monkeypatch.setattr(f"splagger.nn.gpu.{module}.matmul_types", lambda: HALF)
    for module in ("nn.layers", "policy.hypernetwork"):
        monkeypatch.setattr(f"splagger.{module}.matmul_types", lambda: HALF)
    for module in (gru_module, lstm_module):
        monkeypatch.setattr(module, "on_gpu", lambda: True)
    network = Network(EmbeddingSizes(32, 16, 16), 8, 16, 5, (8,), 1 / 4, decoder_hidden=(8,))
    config = tiny(name, MetaEnv(TMaze(length=4), 2), steps=16, epochs=1, minibatches=1)
    config = dataclasses.replace(config, network=network)
    before = random_state(config)
    acting = jax.tree.leaves(before.agent.actor())
    assert any(leaf.dtype == jnp.float16 for leaf in acting)
    after, metrics = jax.jit(lambda state: update(config, TUNABLES, state))(before)
    assert [x.dtype for x in jax.tree.leaves(after)] == [x.dtype for x in jax.tree.leaves(before)]
    assert 0 < metrics["first_ratio_error"] < 0.01


def test_the_kernels_can_be_lowered_for_a_gpu():
    """Lowering, which is everything but the machine code, works without a GPU."""
    gru, loops = GRU.create(jr.key(0), 8, 32), gru_loops.Loops(HALF, kernels=True, interpret=False)
    args = jnp.zeros((16, 32)), jnp.zeros((3, 16, 8))
    loss = lambda *args: gru_loops.recur(loops, *args, jnp.zeros((3, 16), bool)).sum()  # noqa: E731
    assert "triton" in lowered(jax.grad(loss), gru.weights, *args)
