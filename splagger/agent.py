"""The agent: a memory, a latent and a policy."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.errors import SettingError
from splagger.images import Image
from splagger.memory import (
    Decoder,
    Memory,
    SequenceModel,
    Transition,
    TransitionEmbedding,
)
from splagger.methods import Method
from splagger.network import Network
from splagger.nn import Moments, prepare
from splagger.nn.scan import over_axes
from splagger.policy import AbstractLatent, HyperPolicy
from splagger.spaces import ActionSpace
from splagger.vision import Vision


class Interface(NamedTuple):
    """What an agent must know about its environment: shapes, the longest meta-episode, and images in observations."""

    obs_size: int
    space: ActionSpace
    horizon: int
    images: tuple[Image, ...] = ()


class Normalizers(NamedTuple):
    """Running moments of observations and of the memory's outputs. They are state, not parameters.

    Pixels have no moments. They are the first numbers of an observation, and the network divides them by a constant.
    """

    obs: Moments
    output: Moments

    def normalize(self, obs: Float[Array, " obs"]) -> Float[Array, " obs"]:
        """Normalizes all numbers of an observation but the pixels."""
        pixels = self._pixels(obs)
        numbers = self.obs.normalize(obs[pixels:])
        return jnp.concatenate([obs[:pixels], numbers]) if pixels else numbers

    def update(self, obs: Float[Array, "n obs"], outputs: Float[Array, "n out"]) -> "Normalizers":
        """Returns the moments of all data so far and these batches."""
        numbers = obs[:, self._pixels(obs) :]
        return Normalizers(self.obs.update(numbers), self.output.update(outputs))

    def _pixels(self, obs: Array) -> int:
        return obs.shape[-1] - self.obs.mean.shape[0]


class ActionNoise(NamedTuple):
    """The random numbers behind one action: those of the latent, and those of the action itself."""

    latent: Float[Array, " z"]
    action: Float[Array, " a"]


class Action(NamedTuple):
    """An action and its log-probability."""

    action: Array
    log_prob: Float[Array, ""]


class Actor(eqx.Module):
    """The acting part of an agent, with everything precomputed that does not change between steps.

    Rollouts, evaluations, analyses and loaded agents all act through this class.
    """

    memory: SequenceModel
    latent: AbstractLatent
    policy: HyperPolicy
    empty: Memory

    def act(
        self,
        memory: Memory,
        obs: Float[Array, " obs"],
        noise: ActionNoise,
        normalizers: Normalizers,
        explore: bool = True,
    ) -> Action:
        """Samples an action, or returns the most likely one if `explore` is False."""
        inputs = _policy_inputs(self.latent, memory.output, obs, noise.latent, normalizers)
        distribution = self.policy.distribution(*inputs)
        action = distribution.perturbed(noise.action) if explore else distribution.mode()
        return Action(action, distribution.log_prob(action))

    def observe(
        self, memory: Memory, transition: Transition, task_done: Bool[Array, ""] | bool
    ) -> Memory:
        """Returns the memory after one more transition; empty if the task ended with it."""
        memory, _ = self.memory.step(memory, transition, False)
        return _empty_where(task_done, self.empty, memory)


class Agent(eqx.Module):
    """A memory and a policy that depends on it. An agent holds parameters only; state is passed in.

    >>> from splagger.methods import METHODS
    >>> from splagger.spaces import Discrete
    >>> agent = build(jr.key(0), METHODS["splagger"], Interface(5, Discrete(4), 100))
    >>> actor, memory, normalizers = agent.actor(), agent.start(), agent.normalizers()
    >>> noise = agent.sample_noise(jr.key(1), jr.key(2))
    >>> chosen = actor.act(memory, jnp.ones(5), noise, normalizers)
    >>> step = Transition(jnp.ones(5), chosen.action, jnp.float32(0), jnp.ones(5))
    >>> memory = actor.observe(memory, step, task_done=False)
    """

    memory: SequenceModel
    latent: AbstractLatent
    policy: HyperPolicy
    decoder: Decoder | None
    space: ActionSpace = eqx.field(static=True)

    def start(self) -> Memory:
        """Returns an empty memory."""
        return self.memory.start()

    def normalizers(self) -> Normalizers:
        """Returns moments that have not seen any data."""
        numbers, outputs = self.policy.numbers, self.memory.output_size
        return Normalizers(Moments.create(numbers), Moments.create(outputs))

    def sample_noise(self, latent_key: Key[Array, ""], action_key: Key[Array, ""]) -> ActionNoise:
        """Draws the random numbers behind one action. A replay of the action reuses them."""
        size = self.latent.noise_size(self.memory.output_size)
        return ActionNoise(jr.normal(latent_key, (size,)), self.space.noise(action_key))

    def actor(self) -> Actor:
        """Returns an actor for many steps with the current parameters."""
        memory, policy = prepare((self.memory, self.policy))
        return Actor(memory, self.latent, policy, self.start())

    def policy_and_value(self, output: Float[Array, " out"], obs, noise, normalizers: Normalizers):
        """Returns (action distribution, value) of one step, given the memory's output before it."""
        return self.policy(*_policy_inputs(self.latent, output, obs, noise, normalizers))

    def evaluate_batch(self, outputs, obs, noise, normalizers: Normalizers):
        """Returns (distributions, values) of a batch of steps."""
        return self.policy.evaluate_batch(*self._batch_inputs(outputs, obs, noise, normalizers))

    def value_batch(self, outputs, obs, noise, normalizers: Normalizers) -> Float[Array, " B"]:
        """Returns the values of a batch of steps, without the distributions."""
        return self.policy.value_batch(*self._batch_inputs(outputs, obs, noise, normalizers))

    def replay(
        self,
        memory: Memory,
        transitions: Transition,
        task_done: Bool[Array, "T *batch"],
        task_length: int | None = None,
    ) -> tuple[Memory, Float[Array, "T *batch out"]]:
        """Returns the last memory of a rollout and, for each of its T steps, the output before the action.

        Equals repeated `Actor.observe`. The first output is stored in `memory`: a constant, without gradient.
        If every task has `task_length` steps and the rollout consists of whole tasks, they are unrolled in
        parallel: `task_length` sequential steps instead of T.
        """
        steps = task_done.shape[0]
        if task_length is None or steps % task_length:
            last, after = self.memory.unroll(memory, transitions, first_steps(task_done))
        else:
            last, after = self._unroll_tasks(memory, transitions, task_done, task_length)
        empty = over_axes(_empty_where, task_done.ndim - 1, in_axes=(0, None, 0))
        last = empty(task_done[-1], self.start(), last)
        return last, self._outputs_before(memory, after, task_done)

    def _unroll_tasks(self, memory, transitions, task_done, task_length):
        """Unrolls a rollout of whole tasks, with the tasks on a batch axis."""
        tasks = task_done.shape[0] // task_length

        def by_task(x):
            return jnp.moveaxis(x.reshape(tasks, task_length, *x.shape[1:]), 0, 1)

        # `first_steps` empties the memory of every task but the first.
        inputs = jax.tree.map(by_task, (transitions, first_steps(task_done)))
        memories = jax.tree.map(lambda m: jnp.broadcast_to(m, (tasks, *m.shape)), memory)
        last, after = self.memory.unroll(memories, *inputs)
        after = jnp.moveaxis(after, 1, 0).reshape(*task_done.shape, -1)
        return jax.tree.map(lambda m: m[-1], last), after

    def _batch_inputs(self, outputs, obs, noise, normalizers: Normalizers):
        inputs = over_axes(_policy_inputs, 1, in_axes=(None, 0, 0, 0, None))
        return inputs(self.latent, outputs, obs, noise, normalizers)

    def _outputs_before(self, memory, after, task_done):
        """Shifts the outputs after each step to those before it."""
        start = jnp.broadcast_to(self.start().output, after.shape)
        after = jnp.where(task_done[..., None], start, after)
        return jnp.concatenate([memory.output[None], after[:-1]])


def _policy_inputs(latent: AbstractLatent, output, obs, noise, normalizers: Normalizers):
    """Returns the policy's inputs (normalized observation, latent)."""
    return normalizers.normalize(obs), latent(output, noise, normalizers.output)


def first_steps(task_done: Bool[Array, "T *batch"]) -> Bool[Array, "T *batch"]:
    """Returns whether each step follows the end of a task; False at the first step, whose memory is given."""
    return jnp.concatenate([jnp.zeros_like(task_done[:1]), task_done[:-1]])


def _empty_where(task_done, empty: Memory, memory: Memory) -> Memory:
    return jax.tree.map(lambda e, m: jnp.where(task_done, e, m), empty, memory)


def check_precision() -> None:
    """Raises if JAX computes in 64 bits: agents, their files and their kernels are made of 32-bit numbers."""
    if jax.dtypes.canonicalize_dtype(float) == jnp.float64:
        raise SettingError(
            "splagger computes with 32-bit numbers, but JAX is set to 64 bits: unset JAX_ENABLE_X64, or call splagger "
            "inside `with jax.enable_x64(False):`"
        )


def build(
    key: Key[Array, ""], method: Method, interface: Interface, network: Network | None = None
) -> Agent:
    """Builds an untrained agent; vmap it over keys for many seeds."""
    check_precision()
    network = network or Network()
    embedding_key, memory_key, policy_key, decoder_key = jr.split(key, 4)
    obs_size, space, horizon, images = interface

    def vision(key):
        """Memory, policy and decoder have separate networks for images, as they have separate optimizers."""
        return Vision.create(jr.fold_in(key, 1), images, network.image_channels)

    embedding = TransitionEmbedding.create(
        embedding_key, obs_size, space, network.embedding, vision(embedding_key)
    )
    memory = SequenceModel.create(
        memory_key,
        input_size=embedding.output_size,
        encoder=method.encoder,
        width=network.width(method),
        aggregator=method.aggregator,
        skip=method.skip,
        output_size=network.output_size,
        bottleneck=method.bottleneck,
        context=horizon,
        embedding=embedding,
    )
    policy = HyperPolicy.create(
        policy_key,
        obs_size,
        method.latent.size(memory.output_size),
        space,
        network.state_embedding,
        network.latent_embedding,
        network.hidden,
        vision(policy_key),
    )
    decoder = None
    if method.reconstruct:
        decoder = Decoder.create(
            decoder_key,
            memory.output_size // 2,
            obs_size,
            space,
            network.embedding,
            network.decoder_hidden,
            network.decoder_predicts_state,
            vision(decoder_key),
        )
    return Agent(memory, method.latent, policy, decoder, space)
