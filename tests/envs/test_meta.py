"""Meta-episodes: what is kept, resampled and flagged at the ends of episodes and tasks."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import MetaEnv, MineMaze, Planning, TMaze
from tests.close import assert_close

# With random actions, episodes of MINE end at many different times, at a door or by the time limit.
MAZE, TORUS, MINE = TMaze(length=5), Planning(horizon=6), MineMaze(rooms=1, timeout=30)


@partial(jax.jit, static_argnums=0)
@partial(jax.vmap, in_axes=(None, 0, 0, 0))
def run(meta, reset_key, keys, actions):
    def step(state, draws):
        after, out = meta.step(draws[0], state, draws[1])
        return after, (state, out, after)

    return jax.lax.scan(step, meta.reset(reset_key), (keys, actions))[1]


def rollout(env, episodes, n=12, steps=150, seed=0):
    """Returns (state before, MetaStep, state after) for random actions, NumPy arrays [n, steps, ...]."""
    meta = MetaEnv(env, episodes)
    actions = np.random.default_rng(seed).integers(meta.space.size, size=(n, steps))
    keys = jr.split(jr.key(seed), (n, steps + 1))
    return jax.device_get(run(meta, keys[:, 0], keys[:, 1:], actions))


@pytest.mark.parametrize("episodes", [1, 2])
def test_the_task_stays_until_it_is_done_and_is_then_resampled(episodes):
    before, out, after = rollout(TORUS, episodes)
    same = (before.task == after.task).all(-1)
    np.testing.assert_array_equal(same, ~out.task_done)
    tasks = {tuple(task) for task in after.task[out.task_done]}
    assert len(tasks) > 0.99 * out.task_done.sum()


def test_environments_in_a_batch_have_different_tasks():
    before, _, _ = rollout(TORUS, 1)
    assert len({tuple(task) for task in before.task[:, 0]}) == len(before.task)


@pytest.mark.parametrize("episodes", [1, 2, 4])
def test_a_task_is_done_after_exactly_its_episodes(episodes):
    _, out, after = rollout(MAZE, episodes)
    done = np.arange(1, 151)[None].repeat(12, 0)
    np.testing.assert_array_equal(out.episode_done, done % 5 == 0)
    np.testing.assert_array_equal(out.task_done, done % (5 * episodes) == 0)
    np.testing.assert_array_equal(after.episode, done // 5 % episodes)


def test_environments_in_a_batch_count_and_reset_independently():
    episodes = 2
    before, out, after = rollout(MINE, episodes)
    np.testing.assert_array_equal(out.episode_done, out.terminated | out.truncated)
    ended = out.episode_done.cumsum(1)
    np.testing.assert_array_equal(after.episode, ended % episodes)
    np.testing.assert_array_equal(out.task_done, out.episode_done & (ended % episodes == 0))
    np.testing.assert_array_equal(after.inner.time == 0, out.episode_done)
    np.testing.assert_array_equal(after.inner.progress[out.episode_done], 0)
    alone = out.episode_done.any(0) & ~out.episode_done.all(0)
    assert alone.sum() > 20
    lengths = set((before.inner.time + 1)[out.episode_done].tolist())
    assert len(lengths) > 8 and max(lengths) == MINE.timeout


@pytest.mark.parametrize("env", [MAZE, MINE], ids=["t-maze", "mine"])
def test_the_flag_is_set_at_every_end_and_at_every_start_within_a_task(env):
    before, out, after = rollout(env, 2)
    np.testing.assert_array_equal(before.obs[:, 0, -1], 0)
    np.testing.assert_array_equal(after.obs[..., -1], out.episode_done & ~out.task_done)
    np.testing.assert_array_equal(out.next_obs[..., -1], out.episode_done)
    assert (after.obs[..., -1] == 1).sum() > 10


def test_a_single_episode_has_no_flag():
    assert [MetaEnv(TORUS, k).obs_size for k in (1, 2)] == [18, 19]
    before, out, _ = rollout(TORUS, 1)
    assert before.obs.shape[-1] == out.next_obs.shape[-1] == 18


def test_a_step_shows_the_end_of_an_episode_and_the_state_the_start_of_the_next():
    _, out, after = rollout(MAZE, 4)
    at_start, _, at_end, _, _ = np.moveaxis(out.next_obs[out.episode_done], -1, 0)
    assert not at_start.any() and at_end.all()
    at_start, _, at_end, _, _ = np.moveaxis(after.obs[out.episode_done], -1, 0)
    assert at_start.all() and not at_end.any()
    running = ~out.episode_done
    np.testing.assert_array_equal(out.next_obs[running], after.obs[running])


@pytest.mark.parametrize("env", [MAZE, TORUS, MINE], ids=["t-maze", "torus", "mine"])
def test_the_observation_is_that_of_the_inner_state(env):
    _, _, after = rollout(env, 2)
    observed = jax.jit(jax.vmap(jax.vmap(env.observe)))(after.task, after.inner)
    np.testing.assert_array_equal(after.obs[..., :-1], observed)


def test_termination_and_truncation_are_distinguished():
    _, maze, _ = rollout(MAZE, 2)
    _, torus, _ = rollout(TORUS, 1)
    before, mine, _ = rollout(MINE, 2)
    assert maze.terminated.any() and not maze.truncated.any()
    assert torus.truncated.any() and not torus.terminated.any()
    assert mine.truncated.any() and mine.terminated.any()
    assert not (mine.truncated & mine.terminated).any()
    np.testing.assert_array_equal(mine.truncated, before.inner.time == MINE.timeout - 1)


@pytest.mark.parametrize("env", [MAZE, TORUS, MINE, Planning(show_labels=False)], ids=str)
def test_observations_are_float32_within_the_bounds_of_the_spec(env):
    before, out, _ = rollout(env, 2)
    for obs in (before.obs, out.next_obs):
        assert obs.dtype == np.float32
        assert obs.shape == (12, 150, env.spec.obs_size + 1)
        assert obs.min() >= env.spec.obs_low and obs.max() <= env.spec.obs_high
    assert out.reward.dtype == np.float32
    assert len(env.spec.action_names) == env.spec.space.size


@pytest.mark.parametrize("env", [MAZE, TORUS, MINE], ids=["t-maze", "torus", "mine"])
def test_step_is_compiled_once(env):
    meta, traces = MetaEnv(env, 2), []

    @jax.jit
    def step(key, state, action):
        traces.append(action)
        return meta.step(key, state, action)

    state = jax.jit(meta.reset)(jr.key(0))
    for i in range(2 * meta.horizon):
        state, _ = step(jr.key(i), state, jnp.int32(i % 3))
    assert len(traces) == 1


def test_a_batch_equals_single_environments():
    meta = MetaEnv(MAZE, 2)
    keys, actions = jr.split(jr.key(0), (2, 3)), jnp.arange(3)
    states = jax.jit(jax.vmap(meta.reset))(keys[0])
    batch = jax.jit(jax.vmap(meta.step))(keys[1], states, actions)
    reset, step = jax.jit(meta.reset), jax.jit(meta.step)
    for i in range(3):
        alone = step(keys[1, i], reset(keys[0, i]), actions[i])
        assert_close(alone, jax.tree.map(lambda x, i=i: x[i], batch), rtol=0, atol=0)


def test_a_key_determines_the_rollout_and_keys_differ():
    first, again, other = (rollout(TORUS, 2, seed=seed) for seed in (0, 0, 1))
    assert_close(first, again, rtol=0, atol=0)
    assert (first[0].task != other[0].task).any()


@pytest.mark.parametrize("episodes", [0, -1])
def test_a_meta_episode_without_episodes_is_refused(episodes):
    with pytest.raises(ValueError, match=f"MetaEnv: episodes must be at least 1, got {episodes}"):
        MetaEnv(MAZE, episodes)


def test_the_noise_of_a_step_has_three_independent_parts():
    """The step, the start of an episode and the next task have independent random numbers."""
    meta, keys = MetaEnv(TORUS, 1), jr.split(jr.key(0), 64)
    noise = jax.vmap(meta.sample_noise)(keys)
    for key in (noise.step_key, noise.episode_key, keys):
        assert (jax.vmap(TORUS.sample_task)(key) != noise.task).any(axis=1).all()
    assert (jr.key_data(noise.step_key) != jr.key_data(noise.episode_key)).any(axis=1).all()


def test_an_episode_that_terminates_at_its_time_limit_is_not_truncated():
    """Advantages of truncated steps are masked; that of a terminal step must not be."""

    class Both(TMaze):
        def step(self, key, task, state, action):
            state, out = super().step(key, task, state, action)
            return state, out._replace(truncated=out.terminated | out.truncated)

    env, ends = MetaEnv(Both(length=3), episodes=1), []
    state, step = env.reset(jr.key(0)), jax.jit(env.step)
    for t in range(30):
        state, out = step(jr.key(t), state, jnp.int32(t % 4))
        ends.append((bool(out.terminated), bool(out.truncated)))
    assert (True, False) in ends and (True, True) not in ends
