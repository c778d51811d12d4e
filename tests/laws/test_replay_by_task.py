"""Replaying tasks of equal length side by side equals replaying them one after another."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import MetaEnv, MineMaze, Planning, TMaze
from splagger.memory import Transition
from tests.close import assert_close
from tests.ppo.probe_envs import RandomEnds, random_state, tiny

ENV = MetaEnv(TMaze(length=4), 2)
LENGTH = ENV.task_length


@ft.cache
def state_of(name):
    return random_state(tiny(name, ENV))


def random_transitions(steps, done_steps):
    """Returns (transitions, task ends) whose first task starts after its first `done_steps` steps."""
    obs, after, rewards = jr.split(jr.key(steps + done_steps), 3)
    transitions = Transition(
        jr.normal(obs, (steps, ENV.obs_size)),
        jnp.arange(steps) % 4,
        jr.normal(rewards, (steps,)),
        jr.normal(after, (steps, ENV.obs_size)),
    )
    return transitions, (jnp.arange(steps) + done_steps + 1) % LENGTH == 0


@ft.cache
def nonempty_memory(name):
    """Returns a memory after three steps. Only the first task of a rollout may depend on it."""
    agent, (transitions, _) = state_of(name).agent, random_transitions(3, 0)
    unroll = jax.jit(lambda agent: agent.replay(agent.start(), transitions, jnp.zeros(3, bool))[0])
    return unroll(agent)


def both(name, steps, done_steps):
    """Returns (replay by task, replay step by step, agent); each replay maps agent → (memory, outputs)."""
    state, memory = state_of(name), nonempty_memory(name)
    args = memory, *random_transitions(steps, done_steps)
    by_task = lambda agent: agent.replay(*args, task_length=LENGTH)  # noqa: E731
    in_order = lambda agent: agent.replay(*args)  # noqa: E731
    return by_task, in_order, state.agent


# Every length with one method; the others from the middle of a task, `make test-slow` with every length.
LENGTHS = [(24, 0), (8, 0), (20, 3), (5, 1)]
CASES = [("splagger", *case) for case in LENGTHS]
CASES += [
    pytest.param(name, *case, marks=[pytest.mark.slow] * (case != (20, 3)))
    for name in ("transformer", "amrl", "pearl", "lstm")
    for case in LENGTHS
]


@pytest.mark.parametrize("name, steps, done_steps", CASES)
def test_replay_by_task_equals_replay_in_order(name, steps, done_steps):
    by_task, in_order, agent = both(name, steps, done_steps)
    assert_close(jax.jit(by_task)(agent), jax.jit(in_order)(agent), rtol=1e-5, atol=1e-6)


def test_gradients_are_equal():
    by_task, in_order, agent = both("splagger", 24, 0)
    weights = jnp.sin(jnp.arange(24 * agent.memory.output_size)).reshape(24, -1)

    def gradient(replay):
        loss = lambda agent: jnp.sum(weights * replay(agent)[1])  # noqa: E731
        return jax.jit(jax.grad(loss))(agent)

    assert_close(gradient(by_task), gradient(in_order), rtol=1e-4, atol=1e-5)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(gradient(by_task).memory)) > 0.1


def test_only_fixed_length_environments_have_a_task_length():
    assert MetaEnv(TMaze(), 4).task_length == 400 and MetaEnv(Planning(), 1).task_length == 100
    assert MetaEnv(RandomEnds(), 2).task_length is None
    assert MetaEnv(MineMaze(), 2).task_length is None


@pytest.mark.parametrize(
    "name", ["splagger", "pearl", pytest.param("transformer", marks=pytest.mark.slow)]
)
def test_a_batch_of_rollouts_equals_each_rollout_alone(name):
    """With a batch axis of tasks and one of environments, neither environments nor steps are mixed up."""
    agent, steps, envs = state_of(name).agent, 3 * LENGTH, 3
    rollouts = [random_transitions(steps, done) for done in (0, 3, 5)]
    transitions, task_done = jax.tree.map(lambda *x: jnp.stack(x, axis=1), *rollouts)
    memory = jax.tree.map(lambda m: jnp.broadcast_to(m, (envs, *m.shape)), nonempty_memory(name))
    replay = lambda *args: agent.replay(*args)  # noqa: E731
    alone = jax.vmap(replay, in_axes=(0, 1, 1), out_axes=(0, 1))
    together = jax.jit(replay)(memory, transitions, task_done)
    assert_close(together, jax.jit(alone)(memory, transitions, task_done), rtol=1e-5, atol=1e-6)
    aligned = jnp.broadcast_to(
        task_done[:, :1], task_done.shape
    )  # all tasks start at the same time
    by_task = jax.jit(lambda *args: agent.replay(*args, task_length=LENGTH))
    in_order = jax.jit(replay)(memory, transitions, aligned)
    assert_close(by_task(memory, transitions, aligned), in_order, rtol=1e-5, atol=1e-6)
