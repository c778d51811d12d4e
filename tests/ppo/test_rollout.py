"""Rollouts: consecutive steps connect, memories equal those of a loop, and evaluations count one task."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import MetaEnv
from splagger.memory import Transition
from splagger.ppo.evaluation import episode_returns
from splagger.ppo.rollout import collect
from splagger.spaces import Discrete
from tests.close import assert_close
from tests.ppo.probe_envs import RandomEnds, random_state, tiny

STEPS = 30
ENV = MetaEnv(RandomEnds(), 2)  # episodes of 1 to 4 steps, two per task; continuous actions
both = pytest.mark.parametrize("name", ["splagger", "pearl"])


@ft.cache
def rolled(name, explore=True):
    """Returns (state before, actors after, rollout) for random weights and memories of an earlier rollout."""
    state = random_state(tiny(name, ENV))
    run = jax.jit(
        lambda actors, key: collect(
            ENV, state.agent, state.normalizers, actors, jr.split(key, STEPS), explore
        )
    )
    before, _ = run(state.actors, jr.key(1))
    return state._replace(actors=before), *run(before, jr.key(2))


@both
def test_consecutive_steps_connect_unless_the_task_ended(name):
    _, actors, rollout = rolled(name)
    seen, done = rollout.transitions.next_obs, np.asarray(rollout.task_done)
    following = np.concatenate([rollout.transitions.obs[1:], actors.env.obs[None]])
    assert 10 < done.sum() < done.size / 2
    np.testing.assert_array_equal(seen[~done], following[~done])
    assert (np.asarray(seen)[done] != following[done]).any(axis=1).all()
    assert (seen[done][:, -1] == 1).all() and (following[done][:, -1] == 0).all()  # done flags


@both
def test_the_last_observation_of_every_episode_is_recorded(name):
    """Between episodes the agent sees the first observation of the next one; `reached` is the one before."""
    _, _, rollout = rolled(name)
    between = np.asarray(rollout.episode_done & ~rollout.task_done)
    seen, reached = np.asarray(rollout.transitions.next_obs), np.asarray(rollout.reached)
    assert between.sum() > 10
    assert_close(reached[~between], seen[~between], rtol=1e-6, atol=1e-6)  # rounded separately
    assert (seen[between][:, :2] != reached[between][:, :2]).all()
    assert (reached[between][:, -1] == 1).all()  # done flags


@both
def test_memories_equal_repeated_observe(name):
    state, actors, rollout = rolled(name)
    observe = jax.jit(jax.vmap(state.agent.actor().observe))
    memory = state.actors.memory
    for t in range(STEPS):
        assert_close(rollout.outputs[t], memory.output)
        step = jax.tree.map(lambda leaf, t=t: leaf[t], rollout.transitions)
        memory = observe(memory, step, rollout.task_done[t])
    assert_close(actors.memory, memory)


@both
def test_memories_are_empty_after_the_end_of_a_task(name):
    state, actors, rollout = rolled(name)
    following = jnp.concatenate([rollout.outputs[1:], actors.memory.output[None]])
    empty = (np.abs(following - state.agent.start().output[None, None]) < 1e-6).all(axis=-1)
    np.testing.assert_array_equal(empty, rollout.task_done)


@both
def test_recorded_log_probabilities_are_those_of_the_policy(name):
    state, _, rollout = rolled(name)

    @jax.jit
    def log_prob(output, obs, noise, action):
        one = lambda o, s, n: state.agent.policy_and_value(o, s, n, state.normalizers)  # noqa: E731
        distribution, _ = jax.vmap(jax.vmap(one))(output, obs, noise)
        return jax.vmap(jax.vmap(lambda d, a: d.log_prob(a)))(distribution, action)

    steps = rollout.transitions
    expected = log_prob(rollout.outputs, steps.obs, rollout.noise, steps.action)
    assert_close(rollout.log_prob, expected, rtol=1e-5, atol=1e-5)


def test_every_step_of_every_environment_has_its_own_noise():
    _, _, rollout = rolled("pearl")
    for leaf in (rollout.noise, rollout.transitions.action, rollout.transitions.obs):
        assert len(np.unique(leaf[..., 0])) == leaf[..., 0].size


def test_ends_are_nested():
    """The end of a task is the end of an episode, and a truncated episode has ended."""
    _, _, rollout = rolled("splagger")
    assert rollout.truncated.any() and (rollout.truncated <= rollout.episode_done).all()
    assert rollout.task_done.any() and (rollout.task_done < rollout.episode_done).any()
    assert (rollout.task_done <= rollout.episode_done).all()


def test_without_exploration_only_the_environment_is_random():
    state, _, rollout = rolled("splagger", explore=False)
    at_the_mode = -np.log(2 * np.pi) - state.agent.policy.log_std.sum()  # two dimensions
    assert_close(rollout.log_prob, np.full((STEPS, 4), at_the_mode), rtol=1e-4)


def by_loop(env, state, tasks, key):
    """Computes the episode returns one task after another, step by step until each task ends."""
    agent, normalizers = state.agent, state.normalizers
    actor = agent.actor()
    start_key, run_key = jr.split(key)
    starts, keys = jr.split(start_key, tasks), jr.split(run_key, env.horizon)

    @jax.jit
    def step(world, memory, key):
        latent_key, action_key, env_key = jr.split(key, 3)
        noise = agent.sample_noise(latent_key, action_key).latent
        distribution, _ = agent.policy_and_value(memory.output, world.obs, noise, normalizers)
        action = distribution.mode()
        after, out = env.step(env_key, world, action)
        seen = jnp.where(out.task_done, out.next_obs, after.obs)
        transition = Transition(world.obs, action, out.reward, seen)
        return after, actor.observe(memory, transition, out.task_done), out

    returns, start = np.zeros((tasks, env.episodes)), agent.start()
    for n in range(tasks):
        world, memory = env.reset(starts[n]), start
        for t in range(env.horizon):
            episode = int(world.episode)
            world, memory, out = step(world, memory, jr.split(keys[t], tasks)[n])
            returns[n, episode] += out.reward
            if out.task_done:
                break
    return returns


@both
def test_evaluation_plays_each_task_once(name):
    """Tasks end before the horizon; the steps after that belong to the next task and do not count."""
    env = MetaEnv(RandomEnds(space=Discrete(3)), 3)
    state = random_state(tiny(name, env))
    evaluate = jax.jit(lambda key: episode_returns(env, state.agent, state.normalizers, 4, key))
    assert_close(evaluate(jr.key(5)), by_loop(env, state, 4, jr.key(5)), rtol=1e-4, atol=1e-5)
