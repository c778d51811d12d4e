"""The embedding of images: convolutions by their definition, and what the agent does with pixels."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.agent import Interface, build
from splagger.errors import SettingError
from splagger.images import Image, Layer, feature_count, layers_of
from splagger.memory import EmbeddingSizes, Transition
from splagger.methods import METHODS
from splagger.network import Network
from splagger.spaces import Discrete
from splagger.vision import Convolution, ImageNetwork, Vision

RNG = np.random.default_rng(0)
# One program each is compiled faster than every operation by itself.
create_convolution = jax.jit(Convolution.create, static_argnums=1)
create_network = jax.jit(ImageNetwork.create, static_argnums=(1, 2))
create_vision = jax.jit(Vision.create, static_argnums=(1, 2))
build_agent = jax.jit(build, static_argnums=(1, 2, 3))
apply = jax.jit(lambda module, x: module(x))
SMALL = Network(EmbeddingSizes(6, 4, 4), 8, 8, 4, (8,), 1 / 32, decoder_hidden=(8,))


def naive_convolution(layer: Layer, weight, bias, x):
    """The definition of a convolution, with one loop per index."""
    height, width = layer.sides(*x.shape[:2])
    y = np.zeros((height, width, layer.outputs))
    for i, j, o in np.ndindex(*y.shape):
        for a, b, c in np.ndindex(*layer.kernel, layer.inputs):
            w = weight[o].reshape(*layer.kernel, layer.inputs)[a, b, c]
            y[i, j, o] += w * x[layer.stride[0] * i + a, layer.stride[1] * j + b, c]
    return np.maximum(y + bias, 0)


@pytest.mark.parametrize("kernel, stride", [((3, 3), (1, 1)), ((3, 3), (2, 2)), ((3, 1), (2, 1))])
def test_a_convolution_equals_its_definition(kernel, stride):
    layer = Layer(kernel, stride, inputs=2, outputs=3)
    conv = create_convolution(jr.key(0), layer)
    bias = jnp.asarray(RNG.normal(size=3), jnp.float32)
    conv = Convolution(type(conv.linear)(conv.linear.weight, bias), layer)
    x = RNG.normal(size=(6, 7, 2)).astype(np.float32)
    expected = naive_convolution(layer, np.asarray(conv.linear.weight), np.asarray(bias), x)
    np.testing.assert_allclose(apply(conv, jnp.asarray(x)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("side", [5, 8, 9, 10, 16, 84])
def test_every_row_and_column_is_seen(side):
    """Without padding, a stride of 2 could leave out the last pixel."""
    image = Image(side, side, 1)
    network = create_network(jr.key(0), image, (4, 4))
    pixels = jnp.asarray(RNG.uniform(size=(8, image.size)), jnp.float32)
    gradients = jax.jit(jax.vmap(jax.grad(lambda x: network(x).sum())))(pixels)
    seen = np.asarray(jnp.abs(gradients).sum(axis=0) > 0).reshape(side, side)
    assert seen.any(axis=0).all() and seen.any(axis=1).all()


@pytest.mark.parametrize("sides", [(5, 5), (7, 7), (10, 10), (84, 84), (210, 160), (40, 3), (1, 9)])
def test_layers_shrink_every_image_to_few_positions(sides):
    image = Image(*sides, 3)
    layers = layers_of(image, (16, 32))
    height, width = sides
    for layer in layers:
        height, width = layer.sides(height, width)
        assert height >= 1 and width >= 1
    assert layers and max(height, width) <= 4
    assert feature_count(image, layers) == height * width * layers[-1].outputs
    assert [layer.outputs for layer in layers] == [16, 32, 32, 32, 32, 32][: len(layers)]


def test_an_image_network_equals_its_definition():
    image = Image(6, 5, 2, scale=255.0)
    network = create_network(jr.key(0), image, (4, 3))
    x = RNG.integers(256, size=image.shape).astype(np.float32)
    y = x / 255
    for conv in network.convolutions:
        linear = conv.linear
        y = naive_convolution(conv.layer, np.asarray(linear.weight), np.asarray(linear.bias), y)
    y = (y - y.mean()) / np.sqrt(y.var() + 1e-5)
    found = apply(network, jnp.asarray(x.ravel()))
    np.testing.assert_allclose(found, y.ravel(), rtol=1e-3, atol=1e-4)


def test_the_order_of_axes_does_not_matter():
    first, last = Image(6, 7, 2, channels_first=True), Image(6, 7, 2)
    x = RNG.integers(256, size=first.shape).astype(np.float32)
    one = create_network(jr.key(0), first, (4,))
    other = ImageNetwork(one.convolutions, one.norm, last)
    moved = np.moveaxis(x, 0, -1)
    seen = [
        apply(*case)
        for case in ((one, jnp.asarray(x.ravel())), (other, jnp.asarray(moved.ravel())))
    ]
    np.testing.assert_array_equal(*seen)


def test_codes_are_seen_as_planes():
    image = Image(5, 5, 2, codes=4)
    x = RNG.integers(4, size=image.shape)
    planes = ImageNetwork.create(jr.key(0), image, ())(jnp.asarray(x.ravel(), jnp.float32))
    expected = np.eye(4)[x].reshape(5, 5, 8)
    np.testing.assert_array_equal(planes.reshape(5, 5, 8), expected)


def test_numbers_beside_images_pass_through():
    images = (Image(5, 5, 1), Image(6, 6, 2))
    vision = create_vision(jr.key(0), images, (4,))
    obs = jnp.asarray(RNG.integers(256, size=25 + 72 + 3), jnp.float32)
    out = apply(vision, obs)
    assert out.shape == (vision.output_size(100),)
    np.testing.assert_array_equal(out[-3:], obs[-3:])
    first = apply(vision.networks[0], obs[:25])
    np.testing.assert_array_equal(out[: first.shape[0]], first)


def test_without_images_vision_is_the_identity():
    obs = jnp.arange(3.0)
    assert Vision()(obs) is obs and Vision().output_size(3) == 3


def test_pixels_are_not_normalized_and_do_not_enter_the_moments():
    interface = Interface(5 * 5 * 3 + 2, Discrete(3), 9, (Image(5, 5, 3),))
    agent = build_agent(jr.key(0), METHODS["splagger"], interface, SMALL)
    normalizers = agent.normalizers()
    assert normalizers.obs.mean.shape == (2,)
    obs = jnp.asarray(RNG.integers(256, size=(8, 77)), jnp.float32)
    updated = normalizers.update(obs, jnp.zeros((8, 8)))
    np.testing.assert_allclose(updated.obs.mean, obs[:, 75:].mean(axis=0), rtol=1e-3)
    normalized = updated.normalize(obs[0])
    np.testing.assert_array_equal(normalized[:75], obs[0, :75])
    np.testing.assert_array_equal(normalized[75:], updated.obs.normalize(obs[0, 75:]))


def test_the_memory_and_the_policy_both_see_the_picture():
    interface = Interface(75, Discrete(3), 9, (Image(5, 5, 3),))
    agent = build_agent(jr.key(0), METHODS["splagger"], interface, SMALL)
    dark, bright = jnp.zeros(75), jnp.zeros(75).at[jnp.arange(0, 75, 2)].set(255.0)
    step = lambda obs: Transition(obs, jnp.int32(0), jnp.float32(0), obs)  # noqa: E731
    embed = ft.partial(apply, agent.memory.embedding)
    assert not np.allclose(embed(step(dark)), embed(step(bright)))
    policy = jax.jit(lambda obs: agent.policy._embed(obs, jnp.zeros(8))[1])
    assert not np.allclose(policy(dark), policy(bright))
    leaves = jax.tree.leaves((agent.memory.embedding.vision, agent.policy.vision))
    assert len(leaves) == 8  # each has a layer's weight and bias, and a norm's scale and offset


def test_pixels_cannot_be_reconstructed():
    interface = Interface(75, Discrete(3), 9, (Image(5, 5, 3),))
    network = Network(decoder_predicts_state=True)
    with pytest.raises(SettingError, match=r"decoder_predicts_state does not support .* images"):
        build_agent(jr.key(0), METHODS["pearl-vari"], interface, network)
