"""Inputs of memories: the paper's noise, and the transitions of a meta-episode."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger import METHODS, Interface, Network, Transition, build
from splagger.analysis import ANALYSES, Options
from splagger.analysis.inputs import meta_episode, noise
from splagger.analysis.measure import measure
from splagger.analysis.subjects import Subject
from splagger.envs import MetaEnv, MineMaze, TMaze
from splagger.ppo.evaluation import episode_returns
from tests.analysis.memories import INPUTS, small_memory
from tests.close import assert_close

NETWORK = Network(width_factor=1 / 16, state_embedding=16, latent_embedding=5, hidden=(8,))


def agent_of(env, method="splagger"):
    interface = Interface(env.obs_size, env.space, env.horizon)
    return jax.jit(build, static_argnums=(1, 2, 3))(jr.key(0), METHODS[method], interface, NETWORK)


@ft.partial(jax.jit, static_argnums=(1, 3))
def compiled_episode(key, env, agent, length):
    return meta_episode(key, env, agent, agent.normalizers(), length)


def episode(env, agent, length=1000, seed=0):
    return jax.device_get(compiled_episode(jr.key(seed), env, agent, length))


def test_noise_is_shared_by_all_dimensions_or_independent():
    memory = small_memory()
    same, independent = (noise(jr.key(0), memory, 2000, flag).xs for flag in (False, True))
    assert same.shape == independent.shape == (2000, INPUTS)
    assert (same == same[:, :1]).all() and (independent[:, 1:] != independent[:, :1]).all()
    for xs in (same, independent):
        assert -1 <= xs.min() < -0.99 and 0.99 < xs.max() <= 1
        assert abs(xs.mean()) < 0.05 and abs(xs.var() - 1 / 3) < 0.03


def test_a_meta_episode_has_the_episode_ends_and_signals_of_its_maze():
    env = MetaEnv(TMaze(length=5, signals=(1, 3)), episodes=3)
    inputs = episode(env, agent_of(env))
    assert inputs.xs.shape == (15, 80) and inputs.last == 14
    assert np.flatnonzero(inputs.episode_end).tolist() == [4, 9, 14]
    # A signal is seen at the end of one transition and at the start of the next.
    assert np.flatnonzero(inputs.signal).tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13]


def test_only_the_first_picture_of_mc_ls_is_a_signal():
    env = MineMaze(rooms=1)
    for task in (True, False):
        state, obs = env.reset(jr.key(0), jnp.array(task))
        assert env.shows_signal(obs)
        for progress in range(1, env.end + 1):
            state = state._replace(progress=jnp.int32(progress))
            assert not env.shows_signal(env.observe(jnp.array(task), state))


class ShortMaze(TMaze):
    """A maze with episodes half as long as its horizon."""

    @property
    def spec(self):
        return super().spec._replace(horizon=2 * self.length)


def test_steps_after_the_task_do_not_count():
    """A signal in the first cell is also seen at the end of the previous episode, but not of the previous task."""
    env = MetaEnv(ShortMaze(length=4, signals=(0,)), episodes=2)
    inputs = episode(env, agent_of(env))
    assert len(inputs.xs) == 16 and inputs.last == 7
    assert np.flatnonzero(inputs.signal[:8]).tolist() == [0, 3, 4]


def test_summed_rewards_match_the_evaluation():
    env = MetaEnv(TMaze(length=5), episodes=3)
    agent = agent_of(env)
    evaluate = jax.jit(lambda key: episode_returns(env, agent, agent.normalizers(), 1, key))
    for seed in range(4):
        inputs = episode(env, agent, seed=seed)
        episodes = [part.sum() for part in np.split(inputs.reward, 3)]
        assert_close(np.array(episodes), np.asarray(evaluate(jr.key(seed)))[0])
        assert np.any(inputs.reward != 0)


def test_rewards_after_the_task_are_zero():
    """Rewards after the end of the task belong to the next task."""
    env = MetaEnv(ShortMaze(length=4), episodes=1)
    agent = jax.tree.map(lambda leaf: leaf[None], agent_of(env))
    normalizers = jax.vmap(type(agent).normalizers)(agent)
    subject = Subject("splagger", "here", "", "here", env, (0,), agent, normalizers)
    values, _ = measure(ANALYSES["adaptation"], subject, Options())
    assert [value.step for value in values] == list(range(8))
    assert all(value.value == 0 for value in values[4:])
    one = episode(env, agent_of(env))
    assert one.last == 3 and np.abs(one.reward[4:]).sum() > 0


def test_inputs_reproduce_the_memory_of_the_agent():
    """Feeding them to the memory gives the same state as acting in the same task step by step."""
    env = MetaEnv(TMaze(length=3), episodes=2)
    agent = agent_of(env)
    length = env.horizon - 1  # one more would empty the memory
    inputs = episode(env, agent, length)
    assert inputs.last == length - 1 and len(inputs.xs) == length
    resets = jnp.zeros(length, bool)
    unroll = jax.jit(lambda xs: agent.memory.unroll_embedded(agent.start(), xs, resets))
    fed, _ = unroll(inputs.xs)
    start_key, run_key = jr.split(jr.key(0))
    start = jax.jit(lambda key: (env.reset(key), agent.start()))
    state, memory = start(jr.split(start_key, 1)[0])

    @jax.jit
    def act(state, memory, key):
        latent_key, action_key, env_key = jr.split(jr.split(key, 1)[0], 3)
        actor, noise = agent.actor(), agent.sample_noise(latent_key, action_key)
        chosen = actor.act(memory, state.obs, noise, agent.normalizers(), explore=False)
        new, step = env.step(env_key, state, chosen.action)
        transition = Transition(state.obs, chosen.action, step.reward, new.obs)
        return new, actor.observe(memory, transition, False)

    for key in jr.split(run_key, length):
        state, memory = act(state, memory, key)
    assert_close(memory, fed, rtol=1e-4, atol=1e-5)
