"""SplAgger's memory as a PyTorch module, with weights from our agents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splagger.errors import SettingError
from splagger.images import Image
from splagger.portable.numpy_player import read_agent
from splagger.portable.torch_import import Module, Tensor, require_torch, torch
from splagger.portable.torch_vision import TorchVision, channels_of

ENCODER = ("input_weight", "hidden_weight", "bias", "candidate_bias")


class TorchState(NamedTuple):
    """The GRU's hidden state and the running maxima of the aggregated neurons."""

    hidden: Tensor
    maxima: Tensor


class TorchEmbedding(Module):
    """x = ReLU [φ(s); φ(a); φ(r); φ(s')], where each φ is a linear layer; s and s' share one.

    If observations contain images, φ(s) is the linear layer of `vision(s)`, a `TorchVision`.
    """

    def __init__(
        self, obs: int, action: int, sizes: tuple[int, int, int] = (32, 8, 8), vision: Any = None
    ):
        require_torch()
        super().__init__()
        self.vision = vision or TorchVision()
        inputs = {"state": self.vision.output_size(obs), "action": action, "reward": 1}
        for (name, size), outputs in zip(inputs.items(), sizes, strict=True):
            setattr(self, name, torch.nn.Linear(size, outputs))

    def forward(self, obs: Tensor, action: Tensor, reward: Tensor, next_obs: Tensor) -> Tensor:
        """Embeds transitions with any leading axes; discrete actions are one-hot, rewards have no own axis."""
        seen, after = self.state(self.vision(obs)), self.state(self.vision(next_obs))
        parts = seen, self.action(action), self.reward(reward[..., None]), after
        return torch.relu(torch.cat(parts, dim=-1))


class TorchMemory(Module):
    """SplAgger: a GRU, of whose neurons the first `skip` bypass a running maximum, and a linear layer.

    A reset empties the memory *before* the step, so set it on the first step of a new task. `forward` takes a
    whole sequence and equals repeated `step`. With skip = 1 the memory is a plain GRU.

        memory = TorchMemory(input_size=6)
        state, ys = memory(memory.start(batch), xs, resets)  # xs [T, batch, 6], resets [T, batch] → ys [T, batch, 24]
    """

    def __init__(
        self,
        input_size: int,
        width: int = 256,
        skip: float = 0.5,
        output_size: int = 24,
        floor: float = 0.0,
        embedding: Any = None,
    ):
        require_torch()
        if not 0 <= skip <= 1:
            raise SettingError(f"skip must lie in 0 … 1, got {skip}")
        super().__init__()
        self.width, self.skip, self.floor = width, int(width * skip), floor
        shapes = (3 * width, input_size), (3 * width, width), (3 * width,), (width,)
        for name, shape in zip(ENCODER, shapes, strict=True):
            setattr(self, name, torch.nn.Parameter(torch.zeros(shape)))
        torch.nn.init.orthogonal_(self.input_weight)
        torch.nn.init.orthogonal_(self.hidden_weight)
        self.projection = torch.nn.Linear(width, output_size)
        self.embedding = embedding

    def start(self, *batch: int) -> TorchState:
        """Returns an empty memory for each element of a batch."""
        zeros = self.input_weight.new_zeros(*batch, self.width)
        return TorchState(zeros, self._empty(zeros[..., self.skip :]))

    def step(self, state: TorchState, x: Tensor, reset: Tensor) -> tuple[TorchState, Tensor]:
        """Returns (state, output) after one more input; `reset` empties the memory first."""
        return self._step(state, x @ self.input_weight.T + self.bias, reset)

    def forward(self, state: TorchState, xs: Tensor, resets: Tensor) -> tuple[TorchState, Tensor]:
        """Returns (last state, all outputs) of sequences [T, *batch, input_size] with resets [T, *batch]."""
        outputs = []
        for inputs, reset in zip(xs @ self.input_weight.T + self.bias, resets, strict=True):
            state, output = self._step(state, inputs, reset)
            outputs.append(output)
        return state, torch.stack(outputs)

    def first_output(self) -> Tensor:
        """Returns the output before the first step: that for one all-zero input, which is not kept."""
        zero = self.input_weight.new_zeros(self.input_weight.shape[1])
        return self.step(self.start(), zero, zero.new_zeros((), dtype=torch.bool))[1]

    def _step(self, state, inputs, reset):
        reset = reset[..., None]
        h = torch.where(reset, torch.zeros_like(state.hidden), state.hidden)
        h = self._gru(inputs, h @ self.hidden_weight.T, h)
        maxima = torch.where(reset, self._empty(state.maxima), state.maxima)
        e = h[..., self.skip :]
        # At a tie, the earliest has all of the gradient.
        maxima = torch.where(maxima >= e, maxima, e)
        read = torch.maximum(maxima, maxima.new_tensor(self.floor))
        return TorchState(h, maxima), self.projection(torch.cat([h[..., : self.skip], read], -1))

    def _gru(self, inputs, hidden, h):
        """r, z = σ(Wx + Uh + b);  n = tanh(Wx + b + r·(Uh + c));  h' = (1 - z)·n + z·h."""
        (r, z, n), (u, v, q) = inputs.chunk(3, -1), hidden.chunk(3, -1)
        n = torch.tanh(n + torch.sigmoid(r + u) * (q + self.candidate_bias))
        return n + torch.sigmoid(z + v) * (h - n)

    def _empty(self, maxima):
        return torch.full_like(maxima, torch.finfo(maxima.dtype).min)


def from_file(path: str | Path) -> TorchMemory:
    """Returns the memory of an agent file with its embedding; raises a UserError if it is not SplAgger's."""
    found = read_agent(path)
    arrays, method = found.arrays, found.method
    aggregator = method["aggregator"]
    is_maximum = aggregator.get("kind") == "Max" and "code" not in aggregator  # of ours
    if method["encoder"] != "gru" or method["bottleneck"] or not is_maximum:
        raise SettingError(
            f"{path}: PyTorch memories are a GRU with a maximum (splagger, rnn, splagger-nosplit), not "
            f"{method['name']}"
        )
    return from_arrays(arrays, method["skip"], aggregator["floor"], images=found.images)


def from_arrays(
    arrays: Mapping[str, np.ndarray],
    skip: float = 0.5,
    floor: float = 0.0,
    name: str = "0.memory",
    images: Sequence[Image] = (),
) -> TorchMemory:
    """Returns a memory with these arrays, which are named as in an agent file, below `name`.

    `images` are those at the beginning of observations.
    """
    require_torch()
    names = [key for key in arrays if key.startswith(f"{name}.")]
    ours = {key.removeprefix(f"{name}."): torch.tensor(np.float32(arrays[key])) for key in names}
    ours = {key.removeprefix("encoder."): tensor for key, tensor in ours.items()}
    embedding = None
    if "embedding.state.weight" in ours:
        parts = [ours[f"embedding.{part}.weight"] for part in ("state", "action", "reward")]
        (inputs, action, _), sizes = (part.shape[1] for part in parts), tuple(map(len, parts))
        networks = (f"embedding.vision.networks.{index}" for index in range(len(images)))
        channels = max((channels_of(ours, name) for name in networks), key=len, default=[])
        vision = TorchVision(images, channels)
        obs = inputs + vision.pixels - vision.output_size(vision.pixels)
        embedding = TorchEmbedding(obs, action, sizes, vision)
    width, inputs = ours["hidden_weight"].shape[1], ours["input_weight"].shape[1]
    outputs = len(ours["projection.bias"])
    memory = TorchMemory(inputs, width, skip, outputs, floor, embedding)
    memory.load_state_dict(ours)
    return memory
