"""What an analysis feeds a memory: noise, or the transitions of a meta-episode that its agent lived through."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.agent import Agent, Normalizers
from splagger.envs import MetaEnv
from splagger.envs.protocol import ShowsSignal
from splagger.memory import SequenceModel
from splagger.ppo.rollout import collect, start_actors


class Inputs(NamedTuple):
    """Embedded inputs of a memory, one sequence; the steps after `last` mean nothing."""

    xs: Float[Array, "*batch T X"]
    last: Int[Array, "*batch"]
    episode_end: Bool[Array, "*batch T"]  # the step is the last of its episode
    signal: Bool[Array, "*batch T"]  # the step's transition shows the task's signal
    reward: Float[Array, "*batch T"]


def noise(
    key: Key[Array, ""], memory: SequenceModel, length: int, independent: bool = False
) -> Inputs:
    """xₜ ~ U(-1, 1): one number for all dimensions as in the paper, or an `independent` one for each."""
    size = memory.encoder.input_size
    drawn = jr.uniform(key, (length, size if independent else 1), minval=-1.0, maxval=1.0)
    nowhere, nothing = jnp.zeros(length, bool), jnp.zeros(length)
    xs = jnp.broadcast_to(drawn, (length, size))
    return Inputs(xs, jnp.int32(length - 1), nowhere, nowhere, nothing)


def meta_episode(
    key: Key[Array, ""], env: MetaEnv, agent: Agent, normalizers: Normalizers, length: int
) -> Inputs:
    """The first `length` transitions of one task, with the agent's most likely actions, as the memory sees them."""
    start_key, run_key = jr.split(key)
    actors = start_actors(env, agent, 1, start_key)
    keys = jr.split(run_key, min(length, env.horizon))
    _, rollout = collect(env, agent, normalizers, actors, keys, explore=False)
    rollout = jax.tree.map(lambda leaf: leaf[:, 0], rollout)
    last = jnp.argmax(rollout.task_done.at[-1].set(True))
    seen = rollout.transitions.obs, rollout.transitions.next_obs
    before, after = (jax.vmap(lambda obs: _shows_signal(env, obs))(obs) for obs in seen)
    xs = jax.vmap(agent.memory.embedding)(rollout.transitions)
    earned = rollout.transitions.reward
    return Inputs(xs, last.astype(jnp.int32), rollout.episode_done, before | after, earned)


def _shows_signal(env: MetaEnv, obs):
    """Whether an observation (without its done flag) shows a signal; most environments have none."""
    if not isinstance(env.env, ShowsSignal):
        return jnp.zeros((), bool)
    return env.env.shows_signal(obs[: env.env.spec.obs_size])
