"""The embedding of images: a small convolutional network for each image in an observation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from splagger.images import Image, Layer, feature_count, layers_of, multiplications
from splagger.nn import Identity, LayerNorm, Linear
from splagger.nn.initializers import kaiming_uniform
from splagger.nn.scan import over_axes


class Convolution(eqx.Module):
    """y[i, j] = ReLU(W x[patch at (s·i, t·j)] + b), without padding.

    All patches are multiplied by one matmul. XLA's own convolution is slow on CPUs if every member of a grid has
    different weights.

    >>> layer = Layer((3, 3), (2, 2), inputs=3, outputs=16)
    >>> Convolution.create(jr.key(0), layer)(jnp.ones((9, 9, 3))).shape
    (4, 4, 16)
    """

    linear: Linear
    layer: Layer = eqx.field(static=True)

    @classmethod
    def create(cls, key: Key[Array, ""], layer: Layer) -> "Convolution":
        weight = kaiming_uniform(key, (layer.outputs, layer.patch_size))
        return cls(Linear(weight, jnp.zeros(layer.outputs)), layer)

    def __call__(self, x: Float[Array, "H W C"]) -> Float[Array, "h w c"]:
        return jax.nn.relu(over_axes(self.linear, 2)(self.patches(x)))

    def patches(self, x: Float[Array, "H W C"]) -> Float[Array, "h w patch"]:
        """Returns the patch under every position of the kernel, with its channels last."""
        (height, width), (s, t) = self.layer.sides(*x.shape[:2]), self.layer.stride
        shifted = [
            x[i : i + s * (height - 1) + 1 : s, j : j + t * (width - 1) + 1 : t]
            for i in range(self.layer.kernel[0])
            for j in range(self.layer.kernel[1])
        ]
        return jnp.concatenate(shifted, axis=-1)


class ImageNetwork(eqx.Module):
    """f(image) = LayerNorm(convolutions(pixels / scale)), flattened.

    The biases start at 0 and ReLU is homogeneous, so that the normalized features of a new network do not depend on
    the brightness of the image. Without convolutions, f is pixels / scale. Pixels that are codes are not divided: the
    network sees the planes [pixel = code].
    """

    convolutions: tuple[Convolution, ...]
    norm: LayerNorm | Identity
    image: Image = eqx.field(static=True)

    @classmethod
    def create(cls, key: Key[Array, ""], image: Image, channels: tuple[int, ...]) -> "ImageNetwork":
        layers = layers_of(image, channels)
        pairs = zip(jr.split(key, max(1, len(layers))), layers, strict=False)
        convolutions = tuple(Convolution.create(k, layer) for k, layer in pairs)
        norm = LayerNorm.create(feature_count(image, layers)) if layers else Identity()
        return cls(convolutions, norm, image)

    @property
    def output_size(self) -> int:
        return feature_count(self.image, [conv.layer for conv in self.convolutions])

    @property
    def multiplications(self) -> int:
        """The number of multiplications for one image."""
        return multiplications(self.image, [conv.layer for conv in self.convolutions])

    def __call__(self, pixels: Float[Array, " pixels"]) -> Float[Array, " features"]:
        x = self._planes(pixels.reshape(self.image.shape))
        for convolution in self.convolutions:
            x = convolution(x)
        return self.norm(x.ravel())

    def _planes(self, x: Float[Array, "A B C"]) -> Float[Array, "H W planes"]:
        x = jnp.moveaxis(x, 0, -1) if self.image.channels_first else x
        if not self.image.codes:
            return x / self.image.scale
        return jax.nn.one_hot(x.astype(jnp.int32), self.image.codes).reshape(*x.shape[:2], -1)


class Vision(eqx.Module):
    """[f(image 1); f(image 2); …; other numbers] of an observation [image 1; image 2; …; other numbers].

    Without images it is the identity.

    >>> vision = Vision.create(jr.key(0), (Image(7, 7, 3),), channels=(16, 32))
    >>> vision(jnp.ones(7 * 7 * 3 + 4)).shape, vision.output_size(7 * 7 * 3 + 4)
    ((292,), 292)
    """

    networks: tuple[ImageNetwork, ...] = ()

    @classmethod
    def create(
        cls, key: Key[Array, ""], images: tuple[Image, ...], channels: tuple[int, ...]
    ) -> "Vision":
        keys = [jr.fold_in(key, index) for index in range(len(images))]
        return cls(
            tuple(ImageNetwork.create(k, i, channels) for k, i in zip(keys, images, strict=True))
        )

    @property
    def pixels(self) -> int:
        """The size of all images together."""
        return sum(network.image.size for network in self.networks)

    def output_size(self, obs_size: int) -> int:
        return obs_size - self.pixels + sum(network.output_size for network in self.networks)

    def __call__(self, obs):
        """Returns a vector of `output_size` numbers."""
        if not self.networks:
            return obs
        sizes = [network.image.size for network in self.networks]
        *images, numbers = jnp.split(obs, [sum(sizes[: i + 1]) for i in range(len(sizes))])
        features = [f(image) for f, image in zip(self.networks, images, strict=True)]
        return jnp.concatenate([*features, numbers])


NO_IMAGES = Vision()
