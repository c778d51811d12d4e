"""Evaluation: whole meta-episodes on new tasks, with the most likely actions."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from splagger.agent import Agent, Normalizers
from splagger.envs import AbstractMetaEnv
from splagger.ppo.rollout import collect, start_actors


def episode_returns(
    env: AbstractMetaEnv, agent: Agent, normalizers: Normalizers, tasks: int, key: Key[Array, ""]
) -> Float[Array, "tasks K"]:
    """Returns the undiscounted return of each of the K episodes of `tasks` meta-episodes, one per task."""
    start_key, run_key = jr.split(key)
    actors = start_actors(env, agent, tasks, start_key)
    keys = jr.split(run_key, env.horizon)
    _, rollout = collect(env, agent, normalizers, actors, keys, explore=False)
    ends = jnp.cumsum(rollout.episode_done, axis=0)
    episode = ends - rollout.episode_done  # of each step; K and above belong to the next task
    in_episode = jax.nn.one_hot(episode, env.episodes)
    return jnp.einsum("tn,tnk->nk", rollout.transitions.reward, in_episode)
