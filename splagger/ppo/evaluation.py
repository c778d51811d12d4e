"""Evaluation: whole meta-episodes on new tasks, with the most likely actions or with sampled ones."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from splagger.agent import Agent, Normalizers
from splagger.envs import AbstractMetaEnv
from splagger.ppo.rollout import Rollout, collect, start_actors


def episode_returns(
    env: AbstractMetaEnv,
    agent: Agent,
    normalizers: Normalizers,
    tasks: int,
    key: Key[Array, ""],
    explore: bool = False,
) -> Float[Array, "tasks K"]:
    """Returns the undiscounted return of each of the K episodes of `tasks` meta-episodes, one per task."""
    return returns_of(env, play(env, agent, normalizers, tasks, key, explore))


def play(
    env: AbstractMetaEnv,
    agent: Agent,
    normalizers: Normalizers,
    tasks: int,
    key: Key[Array, ""],
    explore: bool = False,
) -> Rollout:
    """Plays one meta-episode of each of `tasks` new tasks; `explore` samples actions, as training does."""
    start_key, run_key = jr.split(key)
    actors = start_actors(env, agent, tasks, start_key)
    keys = jr.split(run_key, env.horizon)
    return collect(env, agent, normalizers, actors, keys, explore)[1]


def returns_of(env: AbstractMetaEnv, rollout: Rollout) -> Float[Array, "tasks K"]:
    """Returns the return of each of the first K episodes of a rollout that started with new tasks."""
    ends = jnp.cumsum(rollout.episode_done, axis=0)
    episode = ends - rollout.episode_done  # of each step; K and above belong to the next task
    in_episode = jax.nn.one_hot(episode, env.episodes)
    return jnp.einsum("tn,tnk->nk", rollout.transitions.reward, in_episode)
