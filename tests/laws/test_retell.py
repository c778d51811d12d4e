"""Tasks of equal length told side by side are the same as told one after another, wherever the first began."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import MetaEnv, Planning, TMaze
from splagger.ppo.train import _task_length
from splagger.sequence import Transition
from tests.close import assert_close
from tests.ppo.probe_envs import Chance, quick, random_state, tiny

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


def both(name, steps, done_steps):
    state = state_of(name)
    memory = jax.tree.map(lambda leaf: leaf[0], state.life.memory)
    transitions, task_done = story(steps, done_steps)
    told = lambda agent: agent.retell(memory, transitions, task_done, LENGTH)  # noqa: E731
    replayed = lambda agent: agent.replay(memory, transitions, task_done)[1]  # noqa: E731
    return told, replayed, state.agent


@pytest.mark.parametrize("name", ["splagger", "amrl", "pearl", "lstm", "transformer"])
@pytest.mark.parametrize("steps, done_steps", [(20, 0), (20, 3), (20, 7), (16, 0), (8, 0), (5, 1)])
def test_side_by_side_is_one_after_another(name, steps, done_steps):
    told, replayed, agent = both(name, steps, done_steps)
    assert_close(quick(told)(agent), quick(replayed)(agent), rtol=1e-5, atol=1e-6)


def test_no_task_ends_in_the_rollout():
    memory = jax.tree.map(lambda leaf: leaf[0], state_of("splagger").life.memory)
    transitions, _ = story(20, 0)
    never, agent = jnp.zeros(20, bool), state_of("splagger").agent
    # A first task that goes on and on cannot be, but its first steps are told like any other's.
    told = agent.retell(memory, transitions, never, LENGTH)
    assert_close(told[:LENGTH], agent.replay(memory, transitions, never)[1][:LENGTH])


def test_their_gradients_are_equal():
    told, replayed, agent = both("splagger", 20, 3)
    weigh = jnp.sin(jnp.arange(20 * agent.memory.output_size)).reshape(20, -1)

    def slope(outputs):
        loss = lambda agent: jnp.sum(weigh * outputs(agent))  # noqa: E731
        return quick(jax.grad(loss))(agent)

    assert_close(slope(told), slope(replayed), rtol=1e-4, atol=1e-5)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(slope(told).memory)) > 0.1


def test_only_punctual_environments_are_told_so(monkeypatch):
    assert MetaEnv(TMaze(), 4).task_length == 400 and MetaEnv(Planning(), 1).task_length == 100
    assert MetaEnv(Chance(), 2).task_length is None
    aligned = tiny("splagger", MetaEnv(Planning(size=2, horizon=5), 1), steps=20)
    cut = tiny("splagger", MetaEnv(TMaze(length=3), 1), steps=20)
    assert _task_length(aligned) == 5 and _task_length(cut) is None
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert _task_length(cut) == 3
