"""Collecting experience: T steps of N environments with one agent."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Key

from splagger.agent import Agent, Normalizers
from splagger.envs import AbstractMetaEnv, MetaEnv
from splagger.memory import Memory, Transition
from splagger.nn.gpu.number_types import on_gpu
from splagger.nn.scan import scan_unroll
from splagger.ppo.staging import in_two_stages


class Rollout(NamedTuple):
    """T steps of N environments, leaves [T, N, …]. `outputs` are the memory's before each action.

    `reached` is the observation after each step, before any reset. The agent does not see it between episodes.
    """

    transitions: Transition
    outputs: Float[Array, "T N out"]
    noise: Float[Array, "T N z"]  # of the latent
    log_prob: Float[Array, "T N"]
    truncated: Bool[Array, "T N"]
    episode_done: Bool[Array, "T N"]
    task_done: Bool[Array, "T N"]
    reached: Float[Array, "T N obs"] | None = None


class ActorState(NamedTuple):
    """N environments and the agent's memory of each; leaves [N, …]."""

    env: Any  # the environment's state; the agent sees its `obs`
    memory: Memory


def start_actors(env: AbstractMetaEnv, agent: Agent, envs: int, key: Key[Array, ""]) -> ActorState:
    """Returns `envs` new tasks with empty memories."""
    repeat = lambda leaf: jnp.broadcast_to(leaf, (envs, *leaf.shape))  # noqa: E731
    return ActorState(jax.vmap(env.reset)(jr.split(key, envs)), jax.tree.map(repeat, agent.start()))


def collect(
    env: AbstractMetaEnv,
    agent: Agent,
    normalizers: Normalizers,
    actors: ActorState,
    keys: Key[Array, " T"],
    explore: bool = True,
) -> tuple[ActorState, Rollout]:
    """Takes one step for each of `keys`; returns (actors, rollout)."""
    actor = agent.actor()
    prepare, advance = stages(env, jax.tree.map(lambda leaf: leaf[0], actors.env))

    def draw(key):
        """Draws all random numbers of one step of one environment."""
        latent_key, action_key, env_key = jr.split(key, 3)
        return agent.sample_noise(latent_key, action_key), prepare(env.sample_noise(env_key))

    def one(actors, noise):
        """Takes one step in one environment."""
        action_noise, env_noise = noise
        obs = actors.env.obs
        action, log_prob = actor.act(actors.memory, obs, action_noise, normalizers, explore)
        state, step = advance(env_noise, (actors.env, action))
        # Between episodes of a task, the next observation is the first one of the next episode.
        next_obs = jnp.where(step.task_done, step.next_obs, state.obs)
        transition = Transition(obs, action, step.reward, next_obs)
        memory = actor.observe(actors.memory, transition, step.task_done)
        ends = step.truncated, step.episode_done, step.task_done
        transition = transition._replace(next_obs=step.next_obs)  # `_connect` replaces it
        record = Rollout(transition, actors.memory.output, action_noise.latent, log_prob, *ends)
        return ActorState(state, memory), _pack(record)

    # Drawing random numbers is a chain of small operations: inside the loop it would take a third of each step.
    envs = actors.env.obs.shape[0]
    noise = jax.vmap(lambda key: jax.vmap(draw)(jr.split(key, envs)))(keys)
    actors, records = jax.lax.scan(jax.vmap(one), actors, noise, unroll=scan_unroll())
    rollout = jax.vmap(jax.vmap(_unpacker(env, agent)))(records)
    return actors, _connect(rollout, actors.env.obs)


def _connect(rollout: Rollout, last_obs: Float[Array, "N obs"]) -> Rollout:
    """Moves the observations before resets to `reached`, and sets `next_obs` to what the memory saw."""
    reached = rollout.transitions.next_obs
    following = jnp.concatenate([rollout.transitions.obs[1:], last_obs[None]])
    next_obs = jnp.where(rollout.task_done[..., None], reached, following)
    return rollout._replace(
        transitions=rollout.transitions._replace(next_obs=next_obs), reached=reached
    )


def stages(env: AbstractMetaEnv, state):
    """Returns `env.advance` in two stages: all that depends on its noise alone, and the rest.

    For a JAX environment on a GPU, the first stage is computed for all steps before the loop. A step may draw random
    numbers from a key, which would take as many kernels as the rest of the step.
    """

    def advance(noise, rest):
        return env.advance(noise, *rest)

    if not (on_gpu() and isinstance(env, MetaEnv)):
        return lambda noise: noise, advance
    noise = jax.eval_shape(env.sample_noise, jr.key(0))
    return in_two_stages(advance, noise, (state, env.space.zero()))


def _pack(record: Rollout) -> Float[Array, " numbers"]:
    """Flattens a record into one vector, so that the loop writes once per step instead of once per field."""
    return ravel_pytree(record)[0]


def _unpacker(env: AbstractMetaEnv, agent: Agent):
    """Returns the inverse of `_pack`."""
    obs, number, flag = jnp.zeros(env.obs_size), jnp.zeros(()), jnp.zeros((), bool)
    transition = Transition(obs, env.space.zero(), number, obs)
    noise = jax.eval_shape(agent.sample_noise, jr.key(0), jr.key(0)).latent
    output = jnp.zeros(agent.memory.output_size)
    example = Rollout(transition, output, jnp.zeros(noise.shape), number, flag, flag, flag)
    return ravel_pytree(example)[1]
