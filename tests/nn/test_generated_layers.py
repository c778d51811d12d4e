"""Kernels of generated layers: they match the definition, and their factors have the documented order."""

import functools as ft
import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.nn import prepare
from splagger.nn.gpu import cuda, generated_layers, generated_layers_hopper, gru_kernel
from splagger.nn.gpu.generated_layers import Kernels, Tiles
from splagger.nn.gpu.number_types import FULL, HALF
from splagger.policy import Hypernetwork, hypernetwork
from splagger.policy.actor_critic import ActorCritic
from splagger.policy.hypernetwork import ActingHypernetwork, GeneratedLinear, LinearHeads
from splagger.spaces import Discrete
from tests.nn.lowering import lowered

SAMPLES, INPUTS, TERMS, OUTPUTS = 21, 8, 6, 16
INTERPRETED = Kernels(*(ft.partial(kernel, interpret=True) for kernel in generated_layers.KERNELS))
hopper = pytest.mark.skipif(
    not generated_layers_hopper.available(), reason="needs a Hopper GPU and nvcc"
)


def layer(samples, inputs, terms, outputs, *runs):
    """Returns random (heads, terms, x)."""
    shapes = (inputs, terms, outputs), (terms, outputs), (samples, terms), (samples, inputs)
    drawn = [jr.normal(jr.key(i), (*runs, *shape)) / 3 for i, shape in enumerate(shapes)]
    create = LinearHeads
    for _ in runs:
        create = jax.vmap(create)
    return create(*drawn[:2]), *drawn[2:]


def differentiate(function, *args):
    """Returns the gradients of a loss that weighs each number of y differently, and y."""

    def loss(*args):
        y = function(*args)
        return (y * jnp.sin(jnp.arange(y.size).reshape(y.shape))).sum(), y

    return jax.grad(loss, argnums=(0, 1, 2), has_aux=True)(*args)


def assert_near(result, exact, tolerance):
    for a, b in zip(*map(jax.tree.leaves, (result, exact)), strict=True):
        assert a.shape == b.shape
        assert np.linalg.norm(a - b) < tolerance * np.linalg.norm(b)


@pytest.mark.parametrize("samples", [SAMPLES, 24])
def test_the_kernels_match_the_definition(samples, monkeypatch):
    """The samples fill all blocks, or not."""
    for name, tiles in (("FORWARD", (8, 4)), ("BY_INPUTS", (8, 4)), ("BY_WEIGHT", (4, 4))):
        monkeypatch.setattr(generated_layers, name, Tiles(*tiles, 4, 2))
    args = layer(samples, INPUTS, TERMS, OUTPUTS, 2)
    kernels = ft.partial(hypernetwork._generated_by_kernels, INTERPRETED)
    plain = ft.partial(hypernetwork._generated, FULL)
    both = [jax.jit(jax.vmap(ft.partial(differentiate, f)))(*args) for f in (kernels, plain)]
    assert_near(*both, tolerance=0.01)


def test_kernels_need_whole_blocks():
    assert generated_layers.fits(2800, 256, 26, 128) and generated_layers_hopper.fits(
        2800, 256, 26, 128
    )
    for sizes in ((100, 256, 26, 128), (2800, 256, 26, 4), (2800, 256, 25, 128)):
        assert not generated_layers.fits(*sizes)
        assert not generated_layers_hopper.fits(*sizes)
    assert not generated_layers_hopper.fits(100_000, 256, 26, 128)
    acting = [(256, 26, 256), (256, 26, 128), (128, 26, 4)]
    assert generated_layers_hopper.Actor.fits(acting)
    assert not generated_layers_hopper.Actor.fits(acting[:2])
    assert not generated_layers_hopper.Actor.fits([*acting[:2], (128, 26, 9)])


def test_factors_have_the_documented_order():
    """Each number is where the comments of generated_layers_hopper.cu say."""
    rng = np.random.default_rng(0)
    numbers = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    weight, d_y, last = numbers(256, 3, 128), numbers(128, 256), numbers(128, 3, 8)
    by_inputs, by_outputs = (
        np.asarray(order(jnp.asarray(weight)))
        for order in (generated_layers_hopper.inner_inputs, generated_layers_hopper.inner_outputs)
    )
    samples = np.asarray(generated_layers_hopper.inner_samples(jnp.asarray(d_y)))
    warps = np.asarray(generated_layers_hopper._for_warps(jnp.asarray(weight)))
    blocks = np.asarray(generated_layers_hopper._for_blocks(jnp.asarray(last)))
    for i, k, o in itertools.product(range(0, 256, 7), range(3), range(0, 128, 5)):
        at = weight[i, k, o]
        assert by_inputs[k, 0, i // 64, i % 64 // 8, o // 8, o % 8, i % 8] == at
        assert by_outputs[k, i // 128, o // 64, o % 64 // 8, i % 128 // 8, i % 8, o % 8] == at
        j, h, t, e = i % 32 // 16, i % 16 // 8, i % 8 // 2, i % 2
        assert warps[o // 16, i // 32, k, o % 16 // 8, o % 8, t, j, h, e] == at
    for n, o in itertools.product(range(128), range(0, 256, 5)):
        t, s, h, e = n % 64 // 16, n % 16 // 4, n % 4 // 2, n % 2
        assert samples[n // 64, o // 128, s, h, o % 128 // 8, o % 8, t, e] == d_y[n, o]
    for i, k, o in itertools.product(range(128), range(3), range(8)):
        h, t, e = i % 16 // 8, i % 8 // 2, i % 2
        assert blocks[i // 16, k, o, t, h, e] == last[i, k, o]


@pytest.mark.parametrize("kernels", [generated_layers.KERNELS, generated_layers_hopper.KERNELS])
def test_the_kernels_can_be_lowered_for_a_gpu(kernels):
    """Lowering, which is everything but the machine code, works without a GPU."""
    args = jax.eval_shape(lambda: layer(300, 256, 26, 128, 3))
    run = ft.partial(differentiate, ft.partial(hypernetwork._generated_by_kernels, kernels))
    text = lowered(jax.vmap(run), *args)
    for target in generated_layers_hopper.TARGETS[:3]:
        assert (target in text) == (kernels is generated_layers_hopper.KERNELS)


def actors(runs):
    """Returns random (weights, biases, terms, inputs) of three layers."""
    sizes = (256, 256), (256, 128), (128, 4)
    weights = [jr.normal(jr.key(i), (runs, a, 26, b)) / 50 for i, (a, b) in enumerate(sizes)]
    biases = [jr.normal(jr.key(9 + i), (runs, 26, b)) / 5 for i, (_, b) in enumerate(sizes)]
    return (
        weights,
        biases,
        jr.normal(jr.key(20), (runs, 10, 26)),
        jr.normal(jr.key(21), (runs, 10, 256)),
    )


def act(weights, biases, terms, x):
    weights = [weight.astype(jnp.float16) for weight in weights]
    return jax.vmap(generated_layers_hopper.Actor.create(weights, biases))(terms, x)


def test_environments_share_the_weights_of_their_actor():
    """One call computes all of them, with each run's weights once, and rows padded to 16."""
    text = lowered(jax.vmap(act), *jax.eval_shape(lambda: actors(2)))
    (call,) = [line for line in text.splitlines() if "@splagger_generated_act" in line]
    assert "tensor<2x16x256xf16>" in call and "tensor<2x8x8x26x4x8x4x2x2x2xf16>" in call


@hopper
@pytest.mark.parametrize("sizes", [(2800, 256, 26, 256), (300, 256, 26, 128), (129, 128, 4, 128)])
def test_on_a_hopper_gpu_the_kernels_match_the_definition(sizes):
    args = layer(*sizes, 3)
    with jax.default_matmul_precision("float32"):
        exact = jax.jit(
            jax.vmap(ft.partial(differentiate, ft.partial(hypernetwork._generated, FULL)))
        )(*args)
    kernels = ft.partial(hypernetwork._generated_by_kernels, generated_layers_hopper.KERNELS)
    assert_near(jax.jit(jax.vmap(ft.partial(differentiate, kernels)))(*args), exact, tolerance=0.01)


@hopper
def test_on_a_hopper_gpu_an_actor_matches_its_layers():
    weights, biases, terms, x = actors(3)
    y = x
    with jax.default_matmul_precision("float32"):
        for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            wide = jnp.einsum("rni,riko->rnko", y, weight) + bias[:, None]
            y = jnp.einsum("rnk,rnko->rno", terms, wide)
            y = jnp.tanh(y) if i < 2 else y
    assert_near(jax.jit(jax.vmap(act))(weights, biases, terms, x), y, tolerance=0.005)


@pytest.fixture
def hopper_gpu(monkeypatch):
    """Pretends that the device is a Hopper GPU whose kernels are compiled."""
    monkeypatch.setattr(hypernetwork, "matmul_types", lambda: HALF)
    monkeypatch.setattr(cuda, "on_gpu", lambda: True)
    monkeypatch.setattr(cuda, "is_hopper", lambda: True)
    monkeypatch.setattr(cuda, "find_compiler", lambda: "nvcc")
    monkeypatch.delenv("SPLAGGER_KERNELS", raising=False)
    for kernels in (generated_layers_hopper, gru_kernel):
        monkeypatch.setattr(kernels, "available", lambda: True)


def full_size():
    return Hypernetwork.create(ActorCritic.create(jr.key(0), 256, (256, 128), Discrete(4)), 25)


SIZES = 2800, 256, 26, 128


def test_the_kernels_can_be_switched_off(hopper_gpu, monkeypatch):
    monkeypatch.setenv("SPLAGGER_KERNELS", "off")
    assert hypernetwork._choose_kernels(*SIZES) is None
    assert type(jax.eval_shape(lambda: prepare(full_size()))) is Hypernetwork


def test_a_hopper_gpu_uses_the_kernels(hopper_gpu, monkeypatch):
    """If the CUDA sources do not compile, it uses the kernels in Triton."""
    assert hypernetwork._choose_kernels(*SIZES) is generated_layers_hopper.KERNELS
    assert hypernetwork._choose_kernels(100, *SIZES[1:]) is None
    assert type(jax.eval_shape(lambda: prepare(full_size()))) is ActingHypernetwork
    monkeypatch.setattr(generated_layers_hopper, "available", lambda: False)
    assert hypernetwork._choose_kernels(*SIZES) is generated_layers.KERNELS
    assert type(jax.eval_shape(lambda: prepare(full_size()))) is Hypernetwork


@pytest.mark.parametrize("switch, dtype", [("off", "f16"), ("auto", "f32")])
def test_layers_without_kernels_round_their_sums_like_those_with_kernels(
    switch, dtype, hopper_gpu, monkeypatch
):
    """Acting and learning then agree: both round products to float16 if there are no kernels, and neither otherwise."""
    monkeypatch.setenv("SPLAGGER_KERNELS", switch)
    heads, terms, x = jax.tree.map(jnp.asarray, layer(3, 256, 26, 4))
    act = lambda x: GeneratedLinear(heads.prepared(), terms[0])(x)  # noqa: E731
    assert f"(tensor<256xf16>, tensor<256x104xf16>) -> tensor<104x{dtype}>" in lowered(act, x[0])
    learn = lambda x: hypernetwork._generated(HALF, heads, terms, x)  # noqa: E731
    assert f"(tensor<3x256xf16>, tensor<256x104xf16>) -> tensor<3x104x{dtype}>" in lowered(learn, x)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="needs a machine without GPU")
def test_a_cpu_ignores_the_switch(monkeypatch):
    """Nothing is compiled, and the lowered program is the same to the letter."""
    monkeypatch.setattr(cuda, "register", lambda *args: pytest.fail("a CUDA source was compiled"))

    shapes = jax.eval_shape(lambda: (full_size(), jnp.zeros((200, 25)), jnp.zeros((200, 256))))

    def lower():
        def run(network, latents, x):  # a new function, traced again
            acting = prepare(network)
            acted = jax.vmap(lambda z, x: acting.policy(z)(x))(latents, x)
            return network.policies(latents)(x), acted

        return jax.jit(run).lower(*shapes).as_text()

    monkeypatch.setenv("SPLAGGER_KERNELS", "off")
    off = lower()
    monkeypatch.setenv("SPLAGGER_KERNELS", "on")
    assert lower() == off and "splagger_generated" not in off
