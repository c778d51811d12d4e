"""Collecting experience: T steps of N environments with one agent."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Key

from splagger.agent import Agent, Normalizers, empty_where
from splagger.envs import AbstractMetaEnv
from splagger.nn.scan import scan_unroll
from splagger.sequence import Memory, Transition


class Rollout(NamedTuple):
    """What happened, leaves [T, N, …]. `outputs` are the memory's, on which each action was chosen."""

    transitions: Transition
    outputs: Float[Array, "T N out"]
    noise: Float[Array, "T N z"]
    log_prob: Float[Array, "T N"]
    truncated: Bool[Array, "T N"]
    episode_done: Bool[Array, "T N"]
    task_done: Bool[Array, "T N"]


class Life(NamedTuple):
    """N environments under way, and what the agent remembers of each; leaves [N, …]."""

    env: Any  # the state of the environment, whose `obs` is seen
    memory: Memory


def begin(env: AbstractMetaEnv, agent: Agent, envs: int, key: Key[Array, ""]) -> Life:
    """N fresh tasks and as many empty memories."""
    repeat = lambda leaf: jnp.broadcast_to(leaf, (envs, *leaf.shape))  # noqa: E731
    return Life(jax.vmap(env.reset)(jr.split(key, envs)), jax.tree.map(repeat, agent.start()))


def collect(
    env: AbstractMetaEnv,
    agent: Agent,
    normalizers: Normalizers,
    life: Life,
    keys: Key[Array, " T"],
    explore: bool = True,
):
    """(life, rollout) after one step for each of `keys`."""
    start = agent.start()
    ready = agent.prepared()

    def draw(key):
        """All luck of one step of one environment."""
        noise_key, action_key, env_key = jr.split(key, 3)
        return agent.noise(noise_key), env.space.noise(action_key), env.chance(env_key)

    def one(life, luck):
        """One step of one environment."""
        noise, action_noise, chance = luck
        output, obs = life.memory.output, life.env.obs
        distribution = ready.distribution(output, obs, noise, normalizers)
        action = distribution.perturbed(action_noise) if explore else distribution.mode()
        state, step = env.advance(chance, life.env, action)
        # Between episodes the agent sees the next one begin; only a task's end is really an end.
        seen = jnp.where(step.task_done, step.next_obs, state.obs)
        transition = Transition(obs, action, step.reward, seen)
        memory, _ = ready.memory.step(life.memory, transition, False)
        life = Life(state, empty_where(step.task_done, start, memory))
        log_prob = distribution.log_prob(action)
        ends = step.truncated, step.episode_done, step.task_done
        return life, _pack(Rollout(transition, output, noise, log_prob, *ends))

    # Randomness is a chain of small operations: drawn inside the loop, it would be a third of each step.
    envs = life.env.obs.shape[0]
    luck = jax.vmap(lambda key: jax.vmap(draw)(jr.split(key, envs)))(keys)
    life, records = jax.lax.scan(jax.vmap(one), life, luck, unroll=scan_unroll())
    return life, jax.vmap(jax.vmap(_unpacker(env, agent)))(records)


def _pack(record: Rollout) -> Float[Array, " numbers"]:
    """One vector: a loop that records it writes once a step instead of once a field."""
    return ravel_pytree(record)[0]


def _unpacker(env: AbstractMetaEnv, agent: Agent):
    """The inverse of `_pack`."""
    obs, number, flag = jnp.zeros(env.obs_size), jnp.zeros(()), jnp.zeros((), bool)
    transition = Transition(obs, env.space.zero(), number, obs)
    noise = jax.eval_shape(agent.noise, jr.key(0))
    output = jnp.zeros(agent.memory.output_size)
    example = Rollout(transition, output, jnp.zeros(noise.shape), number, flag, flag, flag)
    return ravel_pytree(example)[1]
