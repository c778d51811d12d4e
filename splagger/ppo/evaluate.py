"""How good an agent is: whole meta-episodes on fresh tasks, with its most likely actions."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from splagger.agent import Agent, Normalizers
from splagger.envs import AbstractMetaEnv
from splagger.ppo.rollout import begin, collect


def episode_returns(
    env: AbstractMetaEnv, agent: Agent, normalizers: Normalizers, tasks: int, key: Key[Array, ""]
) -> Float[Array, "tasks K"]:
    """The undiscounted return of each of the K episodes of `tasks` meta-episodes, one task each."""
    start_key, run_key = jr.split(key)
    life = begin(env, agent, tasks, start_key)
    keys = jr.split(run_key, env.horizon)
    _, rollout = collect(env, agent, normalizers, life, keys, explore=False)
    ends = jnp.cumsum(rollout.episode_done, axis=0)
    episode = ends - rollout.episode_done  # of the step itself; K and more belong to the next task
    mine = jax.nn.one_hot(episode, env.episodes)
    return jnp.einsum("tn,tnk->nk", rollout.transitions.reward, mine)
