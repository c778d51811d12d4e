"""The Planning Game: labels, goals, moves, time limit and invalid settings."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import Planning

UP, DOWN, LEFT, RIGHT, COLLECT = range(5)
COUNT = 9000
# Degrees of freedom → chi-square value that is exceeded with probability 1e-4.
BOUND = {7: 29.9, 8: 31.8, 71: 124, 80: 136}


def chi_square(counts):
    expected = np.mean(counts)
    return ((counts - expected) ** 2 / expected).sum()


@partial(jax.jit, static_argnums=0)
@partial(jax.vmap, in_axes=(None, 0, None, 0, 0, 0, None))
def move(env, key, task, node, goal, action, time):
    zero = jnp.int32(0)
    state = env.reset(key, task)[0]._replace(node=node, goal=goal, time=zero + time, collected=zero)
    state, out = env.step(key, task, state, action)
    return state, out, env.observe(task, state)


def every_move(size, time=0):
    """Returns all combinations of node, goal and action, and the results of their steps."""
    env = Planning(size=size)
    nodes, goals, actions = (
        x.ravel().astype(np.int32)
        for x in np.meshgrid(*map(np.arange, (size**2, size**2, 5)), indexing="ij")
    )
    task = np.random.default_rng(0).permutation(size**2).astype(np.int32)
    keys = jr.split(jr.key(0), len(nodes))
    state, out, observed = jax.device_get(move(env, keys, task, nodes, goals, actions, time))
    return env, task, nodes, goals, actions, state, out, observed


@jax.jit
@jax.vmap
def starts(key):
    env = Planning()
    task_key, key = jr.split(key)
    task = env.sample_task(task_key)
    return task, *env.reset(key, task)


def test_labels_are_uniform_permutations():
    tasks = np.asarray(starts(jr.split(jr.key(0), COUNT))[0])
    np.testing.assert_array_equal(np.sort(tasks, 1), np.arange(9)[None].repeat(COUNT, 0))
    counts = np.stack([np.bincount(tasks[:, node], minlength=9) for node in range(9)])
    assert max(chi_square(row) for row in counts) < BOUND[8]
    pairs = np.bincount(tasks[:, 0] * 9 + tasks[:, 1], minlength=81).reshape(9, 9)
    assert (np.diag(pairs) == 0).all()
    assert chi_square(pairs[~np.eye(9, dtype=bool)]) < BOUND[71]


def test_start_and_first_goal_are_uniform_over_different_nodes():
    _, state, _ = starts(jr.split(jr.key(1), COUNT))
    pairs = np.bincount(np.asarray(state.node * 9 + state.goal), minlength=81).reshape(9, 9)
    assert (np.diag(pairs) == 0).all()
    assert chi_square(pairs[~np.eye(9, dtype=bool)]) < BOUND[71]


def test_the_start_does_not_depend_on_the_labels():
    tasks, state, _ = starts(jr.split(jr.key(2), COUNT))
    pairs = np.bincount(np.asarray(tasks[:, 0] * 9 + state.node), minlength=81)
    assert chi_square(pairs) < BOUND[80]


def test_a_new_goal_is_uniform_over_the_other_nodes():
    here = np.repeat(np.arange(9, dtype=np.int32), COUNT // 9)
    actions, task = np.full_like(here, COLLECT), np.arange(9, dtype=np.int32)
    keys = jr.split(jr.key(3), len(here))
    state, out, _ = move(Planning(), keys, task, here, here, actions, 0)
    np.testing.assert_array_equal(out.reward, 1)
    np.testing.assert_array_equal(state.node, here)
    pairs = np.bincount(here * 9 + np.asarray(state.goal), minlength=81).reshape(9, 9)
    assert (np.diag(pairs) == 0).all()
    assert max(chi_square(np.delete(pairs[node], node)) for node in range(9)) < BOUND[7]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_moves_wrap_around_the_torus(size):
    _, _, nodes, _, actions, state, _, _ = every_move(size)
    x, y = np.divmod(nodes, size)
    x = (x + (actions == RIGHT) - (actions == LEFT)) % size
    y = (y + (actions == UP) - (actions == DOWN)) % size
    np.testing.assert_array_equal(state.node, x * size + y)


def test_only_collecting_on_the_goal_pays_and_moves_the_goal():
    _, _, nodes, goals, actions, state, out, _ = every_move(3)
    collected = (nodes == goals) & (actions == COLLECT)
    np.testing.assert_array_equal(out.reward, collected)
    np.testing.assert_array_equal(state.collected, collected)
    np.testing.assert_array_equal(state.goal != goals, collected)


@pytest.mark.parametrize("time", [0, 98, 99])
def test_the_hundredth_step_is_the_last_and_is_rewarded(time):
    *_, state, out, _ = every_move(3, time)
    np.testing.assert_array_equal(state.time, time + 1)
    np.testing.assert_array_equal(out.truncated, time == 99)
    np.testing.assert_array_equal(out.terminated, False)
    assert out.reward.sum() == 9


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_observation_is_the_labels_of_agent_and_goal(size):
    env, task, _, _, _, state, out, observed = every_move(size)
    assert env.spec.obs_size == out.obs.shape[1] == 2 * size**2
    eye = np.eye(size**2, dtype=np.float32)
    expected = np.concatenate([eye[task[state.node]], eye[task[state.goal]]], 1)
    np.testing.assert_array_equal(out.obs, expected)
    np.testing.assert_array_equal(observed, out.obs)


def test_without_labels_only_being_on_the_goal_is_observed():
    _, task, _, _, _, state, _, _ = every_move(3)
    env = Planning(show_labels=False)
    observed = jax.jit(jax.vmap(env.observe, in_axes=(None, 0)))(task, state)
    assert env.spec.obs_size == 1
    np.testing.assert_array_equal(observed, (state.node == state.goal)[:, None])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 1}, "size must be at least 2, got 1"),
        ({"size": 0}, "size must be at least 2, got 0"),
        ({"horizon": 0}, "horizon must be a positive integer, got 0"),
        ({"horizon": -5}, "horizon must be a positive integer, got -5"),
    ],
)
def test_invalid_games_are_refused_by_class_field_and_value(settings, message):
    with pytest.raises(ValueError, match=f"^Planning: {message}"):
        Planning(**settings)
