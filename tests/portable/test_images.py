"""Agents that see images act without JAX as with it: NumPy and PyTorch, over an episode with resets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.agent import Agent, Interface, build
from splagger.agents.interface import SavedInterface
from splagger.errors import RunError
from splagger.files.agent_file import in_half_precision, write_agent
from splagger.identity import plain
from splagger.images import Image
from splagger.memory import EmbeddingSizes, Transition
from splagger.methods import METHODS
from splagger.network import Network
from splagger.portable import NumpyPlayer, load, torch_memory
from splagger.runs.named_arrays import named_leaves
from splagger.spaces import Discrete
from tests.portable.test_numpy_player import drawn

STEPS, NUMBERS, ACTIONS = 8, 4, 3
SMALL = Network(EmbeddingSizes(5, 3, 2), 6, 7, 4, (8, 6), width_factor=0.0625)
CODES = Image(7, 7, 3, codes=11)  # as MiniGrid's
PLAIN = Image(12, 9, 2, channels_first=True)
needs_torch = pytest.mark.skipif(torch_memory.torch is None, reason="PyTorch is not installed")
SEEN = pytest.mark.parametrize(
    "images, channels",
    [
        pytest.param((CODES, PLAIN), (3, 4), id="codes-and-pixels"),
        pytest.param((CODES,), (4, 5), id="codes", marks=pytest.mark.slow),
        pytest.param((Image(5, 5, 1), Image(20, 20, 1)), (3, 4), id="small-first"),
        pytest.param((PLAIN,), (3, 4), id="pixels", marks=pytest.mark.slow),
        pytest.param((CODES, PLAIN), (), id="no-convolutions", marks=pytest.mark.slow),
    ],
)


class Case:
    """A JAX agent with random parameters, and what it sees and does in an episode with two resets."""

    def __init__(
        self, images: tuple[Image, ...], channels=(3, 4), method="splagger", numbers=NUMBERS
    ):
        random = np.random.default_rng(0)
        self.images, self.method, self.numbers = images, METHODS[method], numbers
        size = sum(image.size for image in images) + numbers
        self.interface = Interface(size, Discrete(ACTIONS), STEPS, images)
        network = replace(SMALL, image_channels=channels)
        example = lambda: build(jr.key(0), self.method, self.interface, network)  # noqa: E731
        self.agent: Agent = drawn(jax.eval_shape(example), random)
        moments = drawn(jax.eval_shape(self.agent.normalizers), random)
        positive = lambda m: replace(m, variance=jnp.abs(m.variance) + 0.5)  # noqa: E731
        self.normalizers = type(moments)(*map(positive, moments))
        self.obs = np.stack([self._observation(random) for _ in range(STEPS + 1)])
        self.actions, self.rewards = random.integers(ACTIONS, size=STEPS), random.normal(size=STEPS)
        self.done = np.isin(np.arange(STEPS), (2, 5))

    def _observation(self, random):
        pixels = [random.integers(image.codes or 256, size=image.size) for image in self.images]
        return np.concatenate([*pixels, random.normal(size=self.numbers)]).astype(np.float32)

    @property
    def arrays(self):
        return named_leaves((self.agent, self.normalizers))

    def episode(self):
        """Returns (probabilities, values, outputs of the memory after each step) of the JAX agent."""

        def step(memory, inputs):
            obs, action, reward, after, done = inputs
            decided: Any = self.agent.policy_and_value(
                memory.output, obs, no_noise, self.normalizers
            )
            distribution, value = decided
            memory = actor.observe(memory, Transition(obs, action, reward, after), done)
            return memory, (jax.nn.softmax(distribution.logits), value, memory.output)

        actor, no_noise = self.agent.actor(), jnp.zeros(0)
        rewards = self.rewards.astype(np.float32)
        inputs = self.obs[:-1], self.actions, rewards, self.obs[1:], self.done
        unroll = jax.jit(lambda: jax.lax.scan(step, self.agent.start(), inputs)[1])
        return map(np.asarray, unroll())


def check_player(case: Case, player: NumpyPlayer):
    probabilities, values, outputs = case.episode()
    for t, obs in enumerate(case.obs[:-1]):
        found = player.probabilities(obs)
        np.testing.assert_allclose(found, probabilities[t], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(player.value(obs), values[t], rtol=1e-5, atol=1e-5)
        assert player.act(obs) == np.argmax(probabilities[t])
        player.observe(case.actions[t], case.rewards[t], case.obs[t + 1], bool(case.done[t]))
        np.testing.assert_allclose(player.memory.output, outputs[t], rtol=1e-5, atol=1e-5)


@SEEN
def test_the_numpy_player_sees_images_as_the_jax_agent(images, channels):
    case = Case(images, channels)
    player = NumpyPlayer(case.arrays, plain(case.method), images=images)
    assert player.obs_size == case.interface.obs_size
    check_player(case, player)


def test_the_numpy_player_sees_observations_that_are_only_images():
    """Their moments have no numbers, and files do not contain empty arrays."""
    case = Case((PLAIN,), numbers=0)
    assert "1.obs.mean" not in case.arrays
    check_player(case, NumpyPlayer(case.arrays, plain(case.method), images=(PLAIN,)))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["memoryless", "transformer", "lstm"])
def test_other_memories_see_images_as_the_jax_agent(method):
    case = Case((CODES,), method=method)
    player = NumpyPlayer(case.arrays, plain(case.method), context=STEPS, images=(CODES,))
    *_, outputs = case.episode()
    for t, expected in enumerate(outputs):
        player.act(case.obs[t])
        player.observe(case.actions[t], case.rewards[t], case.obs[t + 1], bool(case.done[t]))
        np.testing.assert_allclose(player.memory.output, expected, rtol=1e-5, atol=1e-5)


def saved(case: Case, folder: Path, half: bool) -> Path:
    """Writes the agent file of a case, and rounds its agent as the file does."""
    arrays = case.arrays
    if half:
        arrays |= in_half_precision({n: a for n, a in arrays.items() if n.startswith("0.")})
        rounded = lambda leaf: leaf.astype(jnp.float16).astype(jnp.float32)  # noqa: E731
        case.agent = jax.tree.map(rounded, case.agent)
    size, space, horizon, images = case.interface
    interface = SavedInterface(size, space, horizon, 1, images=images)
    description = {"run": {"method": plain(case.method)}, "interface": interface.to_json()}
    write_agent(folder / "agent.npz", description, arrays)
    return folder / "agent.npz"


@pytest.mark.slow
def test_a_file_in_half_precision_acts_as_the_rounded_jax_agent(tmp_path):
    case = Case((CODES,))
    check_player(case, load(saved(case, tmp_path, half=True)))


def test_a_file_with_wrong_images_is_refused_in_one_line(tmp_path):
    case = Case((PLAIN,))
    case.interface = case.interface._replace(images=(Image(9, 12, 3),))
    with pytest.raises(RunError, match=r"agent\.npz is damaged \(.*"):
        load(saved(case, tmp_path, half=False))


@needs_torch
@SEEN
def test_the_torch_memory_sees_images_as_the_jax_agent(images, channels, tmp_path):
    torch, case = torch_memory.torch, Case(images, channels)
    memory = torch_memory.from_file(saved(case, tmp_path, half=False))
    obs = torch.tensor(case.obs)
    actions = torch.nn.functional.one_hot(torch.tensor(case.actions), ACTIONS).float()
    rewards = torch.tensor(case.rewards, dtype=torch.float32)
    resets = torch.tensor([False, *case.done[:-1]])
    xs = memory.embedding(obs[:-1], actions, rewards, obs[1:])
    _, outputs = memory(memory.start(), xs, resets)
    *_, expected = case.episode()
    kept = (
        ~case.done
    )  # the JAX agent empties its memory at the end of a task, PyTorch's before the next
    np.testing.assert_allclose(outputs.detach()[kept], expected[kept], rtol=1e-5, atol=1e-5)
    outputs.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in memory.parameters())


@needs_torch
def test_a_fresh_torch_memory_takes_images():
    torch = torch_memory.torch
    vision = torch_memory.TorchVision((CODES,))
    embedding = torch_memory.TorchEmbedding(CODES.size + NUMBERS, ACTIONS, vision=vision)
    obs = torch.zeros(2, 5, CODES.size + NUMBERS)
    assert embedding(obs, torch.zeros(2, 5, ACTIONS), torch.zeros(2, 5), obs).shape == (2, 5, 80)
