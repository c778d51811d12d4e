"""Tasks of equal length told side by side are the same as told one after another."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import MetaEnv, MineMaze, Planning, TMaze
from splagger.memory import Transition
from tests.close import assert_close
from tests.ppo.probe_envs import StepNoise, random_state, tiny

ENV = MetaEnv(TMaze(length=4), 2)
LENGTH = ENV.task_length


@ft.cache
def state_of(name):
    return random_state(tiny(name, ENV))


def story(steps, done_steps):
    """Random transitions in which `done_steps` steps of the first task are over already."""
    obs, after, rewards = jr.split(jr.key(steps + done_steps), 3)
    transitions = Transition(
        jr.normal(obs, (steps, ENV.obs_size)),
        jnp.arange(steps) % 4,
        jr.normal(rewards, (steps,)),
        jr.normal(after, (steps, ENV.obs_size)),
    )
    return transitions, (jnp.arange(steps) + done_steps + 1) % LENGTH == 0


@ft.cache
def begun(name):
    """A memory that is not empty: only the first task may see it."""
    agent, (transitions, _) = state_of(name).agent, story(3, 0)
    unroll = jax.jit(lambda agent: agent.replay(agent.start(), transitions, jnp.zeros(3, bool))[0])
    return unroll(agent)


def both(name, steps, done_steps):
    state, memory = state_of(name), begun(name)
    transitions, task_done = story(steps, done_steps)
    told = lambda agent: agent.retell(memory, transitions, task_done, LENGTH)  # noqa: E731
    replayed = lambda agent: agent.replay(memory, transitions, task_done)[1]  # noqa: E731
    return told, replayed, state.agent


@pytest.mark.parametrize("name", ["splagger", "amrl", "pearl", "lstm", "transformer"])
@pytest.mark.parametrize("steps, done_steps", [(24, 0), (8, 0), (20, 3), (5, 1)])
def test_side_by_side_is_one_after_another(name, steps, done_steps):
    told, replayed, agent = both(name, steps, done_steps)
    assert_close(jax.jit(told)(agent), jax.jit(replayed)(agent), rtol=1e-5, atol=1e-6)


def test_their_gradients_are_equal():
    told, replayed, agent = both("splagger", 24, 0)
    weigh = jnp.sin(jnp.arange(24 * agent.memory.output_size)).reshape(24, -1)

    def slope(outputs):
        loss = lambda agent: jnp.sum(weigh * outputs(agent))  # noqa: E731
        return jax.jit(jax.grad(loss))(agent)

    assert_close(slope(told), slope(replayed), rtol=1e-4, atol=1e-5)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(slope(told).memory)) > 0.1


def test_only_punctual_environments_have_a_task_length():
    assert MetaEnv(TMaze(), 4).task_length == 400 and MetaEnv(Planning(), 1).task_length == 100
    assert (
        MetaEnv(StepNoise(), 2).task_length is None and MetaEnv(MineMaze(), 2).task_length is None
    )


@pytest.mark.parametrize("name", ["splagger", "pearl", "transformer"])
def test_a_batch_of_stories_is_each_of_them(name):
    """Tasks side by side, environments beside them: nothing is mixed up, in order or in time."""
    agent, steps, envs = state_of(name).agent, 3 * LENGTH, 3
    stories = [story(steps, done) for done in (0, 3, 5)]
    transitions, task_done = jax.tree.map(lambda *x: jnp.stack(x, axis=1), *stories)
    memory = jax.tree.map(lambda m: jnp.broadcast_to(m, (envs, *m.shape)), begun(name))
    replay = lambda *args: agent.replay(*args)  # noqa: E731
    alone = jax.vmap(replay, in_axes=(0, 1, 1), out_axes=(0, 1))
    together = jax.jit(replay)(memory, transitions, task_done)
    assert_close(together, jax.jit(alone)(memory, transitions, task_done), rtol=1e-5, atol=1e-6)
    whole = jnp.broadcast_to(task_done[:, :1], task_done.shape)  # all begin at the same time
    told = jax.jit(lambda *args: agent.retell(*args, LENGTH))(memory, transitions, whole)
    replayed = jax.jit(replay)(memory, transitions, whole)[1]
    assert_close(told, replayed, rtol=1e-5, atol=1e-6)
