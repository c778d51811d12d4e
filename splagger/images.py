"""Images inside observations: where their pixels are, and the layers of the network that embeds them. Needs no JAX."""

from collections.abc import Sequence
from typing import Any, NamedTuple

LARGE_SIDE, SMALL_SIDE = 8, 4  # longer sides are halved; layers follow until all sides are small


class Image(NamedTuple):
    """An image in an observation. All images are at its beginning, one after another, followed by other numbers.

    - `scale`: the largest value of a pixel, by which the network divides.
    - `channels_first`: the pixels have the order [channels, height, width] instead of [height, width, channels].
    - `codes`: if it is positive, pixels are codes 0 … codes-1 without an order, such as MiniGrid's kinds of objects.
      The network then sees one plane per code and channel, which is 1 where the pixel has that code.
    """

    height: int
    width: int
    channels: int
    scale: float = 255.0
    channels_first: bool = False
    codes: int = 0

    @property
    def size(self) -> int:
        """The number of values."""
        return self.height * self.width * self.channels

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the pixels as they are in the observation."""
        sides = self.height, self.width
        return (self.channels, *sides) if self.channels_first else (*sides, self.channels)

    @property
    def planes(self) -> int:
        """The number of channels that the network sees."""
        return self.channels * max(1, self.codes)


def images_from_json(data: Any, obs_size: int) -> tuple[Image, ...]:
    """Reads the images of observations from an agent file; raises a ValueError if they are wrong."""
    images = []
    for fields in data if isinstance(data, list) else [data]:
        match fields:
            case [height, width, channels, float() as scale, bool() as first, int() as codes] if (
                all(type(side) is int and 1 <= side < 2**31 for side in (height, width, channels))
                and 0 < scale < 2**31
                and 0 <= codes < 256
            ):
                images.append(Image(height, width, channels, scale, first, int(codes)))
            case _:
                raise ValueError(f"its images are {fields!r:.80}")
    if sum(image.size for image in images) > obs_size:
        raise ValueError(f"its images have more values than its {obs_size} numbers")
    return tuple(images)


class Layer(NamedTuple):
    """A convolution without padding, from `inputs` to `outputs` channels."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    inputs: int
    outputs: int

    @property
    def patch_size(self) -> int:
        """The number of values from which one output is computed."""
        return self.kernel[0] * self.kernel[1] * self.inputs

    def sides(self, height: int, width: int) -> tuple[int, int]:
        """Returns the height and width of the outputs."""
        found = [
            (side - kernel) // stride + 1
            for side, kernel, stride in zip((height, width), self.kernel, self.stride, strict=True)
        ]
        return found[0], found[1]


def layers_of(image: Image, channels: Sequence[int]) -> tuple[Layer, ...]:
    """Returns the layers for an image: kernels of 3 pixels, or of 3 or 4 with stride 2 along sides of more than 8.

    Layers follow until no side has more than 4 pixels. Layer i has `channels[i]` outputs, and later layers have as
    many as the last of `channels`. Without `channels` there are no layers.

    >>> [layer.stride for layer in layers_of(Image(84, 84, 3), (16, 32))]
    [(2, 2), (2, 2), (2, 2), (2, 2)]
    >>> [layer.stride for layer in layers_of(Image(7, 7, 3), (16, 32))]
    [(1, 1), (1, 1)]
    """
    sides, inputs, layers = (image.height, image.width), image.planes, []
    while channels and max(sides) > SMALL_SIDE:
        outputs = channels[min(len(layers), len(channels) - 1)]
        (a, s), (b, t) = map(_kernel_and_stride, sides)
        layers.append(Layer((a, b), (s, t), inputs, outputs))
        sides, inputs = layers[-1].sides(*sides), outputs
    return tuple(layers)


def _kernel_and_stride(side: int) -> tuple[int, int]:
    """A kernel of 3 with stride 2 would never see the last pixel of an even side, so that one has 4."""
    if side > LARGE_SIDE:
        return 4 - side % 2, 2
    return (3, 1) if side > SMALL_SIDE else (1, 1)


def multiplications(image: Image, layers: Sequence[Layer]) -> int:
    """Returns the number of multiplications of all layers."""
    total, sides = 0, (image.height, image.width)
    for layer in layers:
        sides = layer.sides(*sides)
        total += sides[0] * sides[1] * layer.patch_size * layer.outputs
    return total


def feature_count(image: Image, layers: Sequence[Layer]) -> int:
    """Returns the number of values after the last layer."""
    height, width, channels = image.height, image.width, image.planes
    for layer in layers:
        height, width = layer.sides(height, width)
        channels = layer.outputs
    return height * width * channels
