"""The embedding of images as PyTorch modules, whose parameters have the names of `splagger.vision`."""

from collections.abc import Mapping, Sequence
from typing import Any

from splagger.images import Image, Layer, feature_count, layers_of
from splagger.portable.torch_import import Module, Tensor, require_torch, torch

CHANNELS = (16, 32)


class TorchVision(Module):
    """[f(image 1); f(image 2); …; other numbers] of observations [image 1; image 2; …; other numbers].

    Observations may have any leading axes. Without images, this is the identity. `channels` are those of the layers;
    later layers have as many as the last one named, and without channels there are no layers.
    """

    def __init__(self, images: Sequence[Image] = (), channels: Sequence[int] = CHANNELS):
        require_torch()
        super().__init__()
        self.pixels = sum(image.size for image in images)
        self.networks = torch.nn.ModuleList(TorchImageNetwork(i, channels) for i in images)

    def output_size(self, obs_size: int) -> int:
        return obs_size - self.pixels + sum(network.output_size for network in self.networks)

    def forward(self, obs: Tensor) -> Tensor:
        sizes = [network.image.size for network in self.networks]
        *images, numbers = obs.split([*sizes, obs.shape[-1] - self.pixels], dim=-1)
        features = [f(image) for f, image in zip(self.networks, images, strict=True)]
        return torch.cat([*features, numbers], dim=-1)


class TorchImageNetwork(Module):
    """f(image) = LayerNorm(convolutions(pixels / scale)), flattened; see `splagger.vision.ImageNetwork`."""

    def __init__(self, image: Image, channels: Sequence[int]):
        super().__init__()
        layers = layers_of(image, channels)
        self.image, self.output_size = image, feature_count(image, layers)
        self.convolutions = torch.nn.ModuleList(map(TorchConvolution, layers))
        self.norm = TorchLayerNorm(self.output_size) if layers else torch.nn.Identity()

    def forward(self, pixels: Tensor) -> Tensor:
        x = self._planes(pixels.reshape(-1, *self.image.shape))
        for convolution in self.convolutions:
            x = convolution(x)
        features = x.movedim(1, -1).reshape(*pixels.shape[:-1], -1)  # channels last, as ours
        return self.norm(features)

    def _planes(self, x: Tensor) -> Tensor:
        """Returns [batch, planes, height, width]: pixels / scale, or [pixel = code]."""
        x = x if self.image.channels_first else x.movedim(-1, 1)
        if not self.image.codes:
            return x / self.image.scale
        codes = torch.arange(self.image.codes, device=x.device)
        equal = x.to(torch.int32)[:, :, None] == codes[:, None, None]
        return equal.flatten(1, 2).to(x.dtype)


class TorchConvolution(Module):
    """y = ReLU(W * x + b) without padding; the weight has the shape [outputs, patch], as in agent files."""

    def __init__(self, layer: Layer):
        super().__init__()
        self.layer = layer
        self.linear = torch.nn.Linear(layer.patch_size, layer.outputs)
        torch.nn.init.kaiming_uniform_(self.linear.weight, nonlinearity="relu")
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.linear.weight.reshape(-1, *self.layer.kernel, self.layer.inputs)
        weight, bias = weight.movedim(-1, 1), self.linear.bias
        return torch.relu(torch.nn.functional.conv2d(x, weight, bias, self.layer.stride))


class TorchLayerNorm(Module):
    """(x - mean) / √(variance + 1e-5), scaled and shifted."""

    def __init__(self, size: int):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(size))
        self.offset = torch.nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.scale, self.offset)


def channels_of(arrays: Mapping[str, Any], name: str) -> list[int]:
    """Returns the channels of the convolutions below a name of an image network."""
    channels: list[int] = []
    while f"{name}.convolutions.{len(channels)}.linear.bias" in arrays:
        channels.append(len(arrays[f"{name}.convolutions.{len(channels)}.linear.bias"]))
    return channels
