"""Compares the classic tasks with their numpy twins, step by step, with the same random numbers and actions."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import Bandit, EndlessTMaze, GoalGrid, KeyToDoor, PointRobot, TabularMDP
from tests.parity import classic_twins as twins
from tests.parity.test_env_twins import Record, assert_equal

ENVS, STEPS = 6, 250


@partial(jax.jit, static_argnums=0)
@partial(jax.vmap, in_axes=(None, 0, 0))
def play(env, keys, actions):
    """Plays one environment with the given actions and a new task after every episode."""

    def start(keys):
        task = env.sample_task(keys[0])
        return True, task, *env.reset(keys[1], task)

    def step(carry, draws):
        (_, task, before, _), (keys, action) = carry, draws
        after, out = env.step(keys[0], task, before, action)
        choose = partial(jnp.where, out.terminated | out.truncated)
        following = jax.tree.map(choose, start(keys[1:]), (False, task, after, out.obs))
        return following, Record(*carry, action, after, out)

    return jax.lax.scan(step, start(keys[0]), (keys, actions))[1]


def record(env, actions, draw=jr.uniform):
    """Returns the records of all environments in a row, and `draw` of every step's key."""
    keys = jr.split(jr.key(0), (ENVS, STEPS, 3))
    records = play(env, keys, jnp.asarray(actions))
    draws = jax.jit(jax.vmap(jax.vmap(draw)))(keys[:, :, 0])
    return jax.tree.map(np.concatenate, jax.device_get((records, draws)))


def choices(env, seed=0):
    return np.random.default_rng(seed).integers(env.spec.space.size, size=(ENVS, STEPS))


def replay(twin, steps, starts, draws):
    """Returns (seen, observation, reward, terminated, truncated) of every step of a twin."""
    expected = []
    rows = zip(steps.first, starts, steps.action, draws, strict=True)
    for first, start, action, draw in rows:
        seen = twin.reset(*start) if first else obs
        obs, *rest = twin.step(action, *draw)
        expected.append((seen, obs, *rest))
    return expected


def nothing(steps):
    return [()] * len(steps.first)


def test_bandits_equal_their_twin():
    env = Bandit(arms=3, pulls=20)
    steps, draws = record(env, choices(env))
    expected = replay(twins.BanditTwin(20), steps, zip(steps.task, strict=True), draws[:, None])
    assert_equal((steps.seen, *steps.out), expected)
    assert set(steps.out.reward.tolist()) == {0, 1}
    assert (steps.after.pulled.sum(1) >= steps.after.paid.sum(1)).all()


def test_tabular_mdps_equal_their_twin():
    def draw(key):
        node, reward = jr.split(key)
        return jr.uniform(node), jr.normal(reward)

    env = TabularMDP(states=6, actions=3, horizon=7)
    steps, draws = record(env, choices(env), draw)
    starts, draws = zip(*steps.task, strict=True), zip(*draws, strict=True)
    assert_equal((steps.seen, *steps.out), replay(twins.TabularTwin(7), steps, starts, draws))
    np.testing.assert_allclose(steps.task.transitions.sum(-1), 1, rtol=1e-5)
    assert set(steps.after.node.tolist()) == set(range(6))


@pytest.mark.parametrize("env", [GoalGrid(), GoalGrid(4, 9, (1, 2), 0.0, -1)], ids=str)
def test_goal_grids_equal_their_twin(env):
    steps, _ = record(env, choices(env))
    twin = twins.GoalGridTwin(env.size, env.steps, env.start, env.penalty)
    expected = replay(twin, steps, zip(steps.task, strict=True), nothing(steps))
    assert_equal((steps.seen, *steps.out), expected)
    assert (steps.out.reward == 1).sum() > 5


def test_key_to_door_equals_its_twin():
    env = KeyToDoor(size=3, steps=30)
    steps, _ = record(env, choices(env))
    twin = twins.KeyToDoorTwin(env.size, env.steps, (1, 1))
    expected = replay(twin, steps, zip(*steps.task, strict=True), nothing(steps))
    assert_equal((steps.seen, *steps.out), expected)
    assert steps.out.terminated.sum() > 5 and steps.out.truncated.sum() > 5


def test_point_robots_equal_their_twin():
    """Up to rounding: compilers may fuse a product and a sum."""
    env = PointRobot(steps=12, radius=0.5, speed=0.2)
    actions = np.random.default_rng(0).normal(0.3, 1.5, size=(ENVS, STEPS, 2))
    steps, _ = record(env, actions.astype(np.float32))
    twin = twins.PointTwin(env.steps, env.radius, env.speed)
    expected = replay(twin, steps, zip(steps.task, strict=True), nothing(steps))
    for ours, column in zip((steps.seen, *steps.out), zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(ours, np.array(column), atol=2e-6)
    assert 10 < (steps.out.reward > 0).sum() < len(actions) * STEPS / 2


def test_endless_mazes_equal_their_twin():
    env = EndlessTMaze(length=4, laps=6)
    steps, draws = record(env, choices(env), lambda key: jr.uniform(key, (3,)))
    twin = twins.EndlessTwin(env.length, env.laps, env.change)
    starts = zip(steps.task, steps.before.noise, strict=True)
    assert_equal((steps.seen, *steps.out), replay(twin, steps, starts, draws))
    ends = steps.before.position == env.length - 1
    changed = (steps.before.signal != steps.after.signal)[ends]
    assert (
        0.15 < changed.mean() < 0.35
    )  # a quarter: half of the laps show a signal, half of those a new one
