"""Inputs of an analysis: noise, or the transitions of a meta-episode with the analyzed agent."""

import functools as ft
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.agent import Agent, Normalizers
from splagger.envs import AbstractMetaEnv, MetaEnv
from splagger.envs.protocol import ShowsSignal, follows
from splagger.memory import SequenceModel
from splagger.ppo.rollout import collect, start_actors


class Inputs(NamedTuple):
    """One sequence of embedded inputs; steps after `last` are to be ignored."""

    xs: Float[Array, "*batch T X"]
    last: Int[Array, "*batch"]
    episode_end: Bool[Array, "*batch T"]  # whether the step is the last of its episode
    signal: Bool[Array, "*batch T"]  # whether the step's transition shows the task's signal
    reward: Float[Array, "*batch T"]


def noise(
    key: Key[Array, ""], memory: SequenceModel, length: int, independent: bool = False
) -> Inputs:
    """Draws xₜ ~ U(-1, 1): one number for all dimensions as in the paper, or `independent` ones."""
    size = memory.encoder.input_size
    drawn = jr.uniform(key, (length, size if independent else 1), minval=-1.0, maxval=1.0)
    never, no_reward = jnp.zeros(length, bool), jnp.zeros(length)
    xs = jnp.broadcast_to(drawn, (length, size))
    return Inputs(xs, jnp.int32(length - 1), never, never, no_reward)


def meta_episode(
    key: Key[Array, ""], env: MetaEnv, agent: Agent, normalizers: Normalizers, length: int
) -> Inputs:
    """Returns the first `length` embedded transitions of one task, with the agent's most likely actions."""
    start_key, run_key = jr.split(key)
    actors = start_actors(env, agent, 1, start_key)
    keys = jr.split(run_key, min(length, env.horizon))
    _, rollout = collect(env, agent, normalizers, actors, keys, explore=False)
    rollout = jax.tree.map(lambda leaf: leaf[:, 0], rollout)
    last = jnp.argmax(rollout.task_done.at[-1].set(True))
    pair = rollout.transitions.obs, rollout.transitions.next_obs
    before, after = (jax.vmap(ft.partial(shows_signal, env))(obs) for obs in pair)
    xs = jax.vmap(agent.memory.embedding)(rollout.transitions)
    reward = rollout.transitions.reward
    return Inputs(xs, last.astype(jnp.int32), rollout.episode_done, before | after, reward)


def shows_signal(env: AbstractMetaEnv, obs: Float[Array, " obs"]) -> Bool[Array, ""]:
    """Returns whether an observation shows a signal; always False if the environment has no signals."""
    size, inner = env.env.spec.obs_size, env.env
    if not follows(inner, ShowsSignal):
        return jnp.zeros((), bool)
    return inner.shows_signal(obs[:size])
