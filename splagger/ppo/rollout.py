"""Collecting experience: T steps of N environments with one agent."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Key

from splagger.agent import Agent, Normalizers, empty_where
from splagger.envs import AbstractMetaEnv
from splagger.sequence import Memory, Transition


class Rollout(NamedTuple):
    """What happened, leaves [T, N, …]. `outputs` are the memory's, on which each action was chosen."""

    transitions: Transition
    outputs: Float[Array, "T N out"]
    noise: Float[Array, "T N z"]
    log_prob: Float[Array, "T N"]
    task_done: Bool[Array, "T N"]
    truncated: Bool[Array, "T N"]


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
    """(life, rollout, rewards and ends of each step) after one step for each of `keys`."""
    start = agent.start()

    def one(life, key):
        """One step of one environment."""
        noise_key, action_key, env_key = jr.split(key, 3)
        output, obs, noise = life.memory.output, life.env.obs, agent.noise(noise_key)
        distribution = agent.distribution(output, obs, noise, normalizers)
        action = distribution.sample(action_key) if explore else distribution.mode()
        state, step = env.step(env_key, life.env, action)
        # Between episodes the agent sees the next one begin; only a task's end is really an end.
        seen = jnp.where(step.task_done, step.next_obs, state.obs)
        transition = Transition(obs, action, step.reward, seen)
        memory, _ = agent.memory.step(life.memory, transition, False)
        life = Life(state, empty_where(step.task_done, start, memory))
        log_prob = distribution.log_prob(action)
        record = Rollout(transition, output, noise, log_prob, step.task_done, step.truncated)
        return life, (record, step)

    envs = life.env.obs.shape[0]
    advance = lambda life, key: jax.vmap(one)(life, jr.split(key, envs))  # noqa: E731
    life, (rollout, steps) = jax.lax.scan(advance, life, keys)
    return life, rollout, steps
