"""The agent: a memory, a latent and a policy, for one environment or a batch of them."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.methods import Method
from splagger.nn import Moments
from splagger.nn.scan import over_axes
from splagger.policy import AbstractLatent, Distribution, HyperPolicy
from splagger.sequence import (
    Decoder,
    EmbeddingSizes,
    Memory,
    SequenceModel,
    Transition,
    TransitionEmbedding,
)
from splagger.spaces import ActionSpace


@dataclass(frozen=True)
class Network:
    """Sizes of an agent's parts; the defaults are the paper's."""

    embedding: EmbeddingSizes = EmbeddingSizes()
    output_size: int = 24
    state_embedding: int = 256
    latent_embedding: int = 25
    hidden: tuple[int, ...] = (256, 128)
    width_factor: float = 1.0  # multiplies the width of the method's encoder
    decoder_hidden: tuple[int, ...] = (32, 32)
    decoder_predicts_state: bool = False

    def __post_init__(self):
        sizes = ("embedding", "output_size", "state_embedding", "latent_embedding")
        for name in (*sizes, "hidden", "decoder_hidden"):
            value = getattr(self, name)
            if any(size < 1 for size in (value if isinstance(value, tuple) else (value,))):
                raise ValueError(f"network.{name} must be positive, got {value}")
        if not 0 < self.width_factor < math.inf:
            raise ValueError(f"network.width_factor must be positive, got {self.width_factor}")


class Interface(NamedTuple):
    """What an agent must know of an environment: shapes, and how long a meta-episode can be."""

    obs_size: int
    space: ActionSpace
    horizon: int


class Normalizers(NamedTuple):
    """Running moments that are no parameters: of observations, and of the memory's outputs."""

    obs: Moments
    output: Moments


class Action(NamedTuple):
    """What was done, how likely it was, and what it was expected to bring."""

    action: Array
    log_prob: Float[Array, ""]
    value: Float[Array, ""]


class Agent(eqx.Module):
    """Remembers transitions, and acts on what it remembers. Parameters only: state is passed in.

    >>> from splagger.methods import METHODS
    >>> from splagger.spaces import Discrete
    >>> agent = build(jr.key(0), METHODS["splagger"], Interface(5, Discrete(4), 100))
    >>> memory, normalizers = agent.start(), agent.normalizers()
    >>> chosen = agent.act(memory, jnp.ones(5), jr.key(1), normalizers)
    >>> step = Transition(jnp.ones(5), chosen.action, jnp.float32(0), jnp.ones(5))
    >>> memory = agent.observe(memory, step, task_done=False)
    """

    memory: SequenceModel
    latent: AbstractLatent
    policy: HyperPolicy
    decoder: Decoder | None

    def start(self) -> Memory:
        """The memory of an agent that knows nothing of its task."""
        return self.memory.start()

    def normalizers(self) -> Normalizers:
        """Moments of nothing yet."""
        obs_size = self.policy.state_embedding.weight.shape[1]
        return Normalizers(Moments.create(obs_size), Moments.create(self.memory.output_size))

    def noise(self, key: Key[Array, ""]) -> Float[Array, " z"]:
        """What a stochastic latent is sampled with; stored, so that a replay samples the same."""
        return jr.normal(key, (self.latent.noise_size(self.memory.output_size),))

    def distribution(
        self, output: Float[Array, " out"], obs, noise, normalizers: Normalizers
    ) -> Distribution:
        """The distribution over actions, given the memory's output and an observation."""
        return self.policy.distribution(*self._condition(output, obs, noise, normalizers))

    def judge(self, output, obs, noise, normalizers: Normalizers):
        """(distribution, value) in one pass."""
        return self.policy(*self._condition(output, obs, noise, normalizers))

    def judge_many(self, outputs, obs, noise, normalizers: Normalizers):
        """(distributions, values) of a batch."""
        return self.policy.many(*self._condition_many(outputs, obs, noise, normalizers))

    def values(self, outputs, obs, noise, normalizers: Normalizers) -> Float[Array, " B"]:
        """The values of a batch alone."""
        return self.policy.values(*self._condition_many(outputs, obs, noise, normalizers))

    def act(
        self,
        memory: Memory,
        obs,
        key: Key[Array, ""],
        normalizers: Normalizers,
        explore: bool = True,
    ) -> Action:
        """A sampled action (the most likely one, not to `explore`), its log-probability and the value of being here."""
        noise_key, action_key = jr.split(key)
        noise = self.noise(noise_key)
        distribution, value = self.judge(memory.output, obs, noise, normalizers)
        action = distribution.sample(action_key) if explore else distribution.mode()
        return Action(action, distribution.log_prob(action), value)

    def observe(
        self, memory: Memory, transition: Transition, task_done: Bool[Array, ""] | bool
    ) -> Memory:
        """The memory after one more transition; empty if it was the last of its task."""
        memory, _ = self.memory.step(memory, transition, False)
        return empty_where(task_done, self.start(), memory)

    def replay(self, memory: Memory, transitions: Transition, task_done: Bool[Array, "T *batch"]):
        """(last memory, the T outputs that each step's action was chosen on).

        The same as repeated `observe`, in one unroll; for many environments at once, if there are more
        axes after T. The first output is the stored one of `memory`: a constant, through which no gradient flows.
        """
        last, after = self.memory.unroll(memory, transitions, resets_of(task_done))
        empty = over_axes(empty_where, task_done.ndim - 1, in_axes=(0, None, 0))
        return empty(task_done[-1], self.start(), last), self._acted_on(memory, after, task_done)

    def retell(
        self,
        memory: Memory,
        transitions: Transition,
        task_done: Bool[Array, "T *batch"],
        task_length: int | None = None,
    ) -> Float[Array, "T *batch out"]:
        """The outputs of `replay`. A rollout of whole tasks, each of `task_length` steps, is unrolled with
        its tasks side by side: so many steps in a row instead of T.
        """
        steps = task_done.shape[0]
        if task_length is None or steps % task_length:
            return self.replay(memory, transitions, task_done)[1]

        tasks = steps // task_length

        def by_task(x):
            return jnp.moveaxis(x.reshape(tasks, task_length, *x.shape[1:]), 0, 1)

        told = jax.tree.map(by_task, (transitions, resets_of(task_done)))  # empty all but the first
        memories = jax.tree.map(lambda m: jnp.broadcast_to(m, (tasks, *m.shape)), memory)
        _, after = self.memory.unroll(memories, *told)
        after = jnp.moveaxis(after, 1, 0).reshape(*task_done.shape, -1)
        return self._acted_on(memory, after, task_done)

    def prepared(self) -> "Agent":
        """The same agent for many steps: what its modules can do once, they did."""
        has = lambda node: hasattr(node, "prepared")  # noqa: E731
        parts = self.memory, self.policy
        ready = jax.tree.map(lambda m: m.prepared() if has(m) else m, parts, is_leaf=has)
        return Agent(ready[0], self.latent, ready[1], self.decoder)

    def _condition(self, output, obs, noise, normalizers: Normalizers):
        """(observation, latent) as the policy takes them."""
        latent = self.latent(output, noise, normalizers.output)
        return normalizers.obs.normalize(obs), latent

    def _condition_many(self, outputs, obs, noise, normalizers: Normalizers):
        """`_condition` of a batch."""
        return jax.vmap(self._condition, in_axes=(0, 0, 0, None))(outputs, obs, noise, normalizers)

    def _acted_on(self, memory, after, task_done):
        """The outputs before each step, of those after it."""
        start = jnp.broadcast_to(self.start().output, after.shape)
        after = jnp.where(task_done[..., None], start, after)
        return jnp.concatenate([memory.output[None], after[:-1]])


def resets_of(task_done):
    """Whether each step is the first of its task; at the start of a rollout the memory is as it should be."""
    return jnp.concatenate([jnp.zeros_like(task_done[:1]), task_done[:-1]])


def empty_where(task_done, start: Memory, memory: Memory) -> Memory:
    return jax.tree.map(lambda s, m: jnp.where(task_done, s, m), start, memory)


def build(
    key: Key[Array, ""], method: Method, interface: Interface, network: Network | None = None
) -> Agent:
    """A fresh agent of this method; vmap it over keys for many seeds."""
    network = network or Network()
    embedding_key, memory_key, policy_key, decoder_key = jr.split(key, 4)
    obs_size, space, horizon = interface
    embedding = TransitionEmbedding.create(embedding_key, obs_size, space, network.embedding)
    memory = SequenceModel.create(
        memory_key,
        input_size=2 * network.embedding.state
        + network.embedding.action
        + network.embedding.reward,
        encoder=method.encoder,
        width=int(method.width * network.width_factor),
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
        method.latent.size(network.output_size),
        space,
        network.state_embedding,
        network.latent_embedding,
        network.hidden,
    )
    decoder = _decoder(decoder_key, interface, network) if method.reconstruct else None
    return Agent(memory, method.latent, policy, decoder)


def _decoder(key, interface: Interface, network: Network) -> Decoder:
    return Decoder.create(
        key,
        network.output_size // 2,
        interface.obs_size,
        interface.space,
        network.embedding,
        network.decoder_hidden,
        network.decoder_predicts_state,
    )
