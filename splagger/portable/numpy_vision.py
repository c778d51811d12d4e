"""The embedding of images in NumPy: small convolutional networks, as `splagger.vision` computes them."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from splagger.images import Image, Layer, feature_count, layers_of
from splagger.portable.arrays import Arrays, Vector


class NumpyVision:
    """[f(image 1); f(image 2); …; other numbers] of an observation [image 1; image 2; …; other numbers].

    - `arrays`: those of the networks in an agent file; images without convolutions have none.
    - `images`: those at the beginning of observations. Without images, this is the identity.
    """

    def __init__(self, arrays: Arrays, images: Sequence[Image]):
        self._networks = [
            NumpyImageNetwork(arrays.below(f"networks.{index}"), image)
            for index, image in enumerate(images)
        ]
        self._ends = np.cumsum([image.size for image in images], dtype=int)
        self.pixels = sum(image.size for image in images)
        self.features = sum(network.output_size for network in self._networks)

    def __call__(self, obs: Vector, normalize: Callable[[Vector], Vector] | None = None) -> Vector:
        """Returns a vector; `normalize` is applied to the numbers that are not pixels."""
        if not self._networks:
            return normalize(obs) if normalize else obs
        *images, numbers = np.split(obs, self._ends)
        numbers = normalize(numbers) if normalize else numbers
        features = [f(image) for f, image in zip(self._networks, images, strict=True)]
        return np.concatenate([*features, numbers])


class NumpyImageNetwork:
    """f(image) = LayerNorm(convolutions(pixels / scale)), flattened; see `splagger.vision.ImageNetwork`."""

    def __init__(self, arrays: Arrays, image: Image):
        parts = []
        while arrays.has(f"convolutions.{len(parts)}.linear.bias"):
            linear = arrays.below(f"convolutions.{len(parts)}.linear")
            parts.append((linear.get("weight").T, linear.get("bias")))
        layers = layers_of(image, [len(bias) for _, bias in parts])
        self._convolutions = list(zip(layers, parts, strict=True))
        self._image, self.output_size = image, feature_count(image, layers)
        if layers and len(arrays.below("norm").get("scale")) != self.output_size:
            raise ValueError(f"its networks for images do not have {self.output_size} features")
        self._norm = arrays.layer_norm("norm") if layers else None

    def __call__(self, pixels: Vector) -> Vector:
        x = planes(self._image, pixels)
        for layer, (weight, bias) in self._convolutions:
            x = np.maximum(np.dot(patches(layer, x), weight) + bias, 0)
        return self._norm(x.ravel()) if self._norm else x.ravel()


def planes(image: Image, pixels: Vector) -> NDArray[np.float32]:
    """Returns what the first layer sees, [height, width, planes]: pixels / scale, or [pixel = code]."""
    x = pixels.reshape(image.shape)
    x = np.moveaxis(x, 0, -1) if image.channels_first else x
    if not image.codes:
        return x / np.float32(image.scale)
    equal = x.astype(np.int32)[..., None] == np.arange(image.codes)
    return equal.reshape(*x.shape[:2], -1).astype(np.float32)


def patches(layer: Layer, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the patch under every position of the kernel, [h, w, patch], with its channels last."""
    windows = np.lib.stride_tricks.sliding_window_view(x, layer.kernel, axis=(0, 1))
    found = windows[:: layer.stride[0], :: layer.stride[1]]  # [h, w, channels, *kernel]
    return np.moveaxis(found, 2, -1).reshape(*found.shape[:2], -1)
