"""Compares every environment with its independent numpy twin, step by step, with the same random draws.

The compiled side plays many episodes in one scan. Its draws (tasks, noise, goals, room kinds) are passed to the
twin, whose observations and rewards must be exactly equal. Half of the environments act at random.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import MetaEnv, MineMaze, Planning, TMaze, views
from tests.parity import twins

LEFT, FORWARD, RIGHT = range(3)
DOORS = {1: twins.correct_door_ls, 2: twins.correct_door_agreement}
PICTURES = dict(zip(views.VIEWS, views.sheet(), strict=True))
FOLLOWS = np.repeat([0.0, 0.9], 4)  # the probability with which each environment follows the script


class Record(NamedTuple):
    """One step. `first` marks the start of an episode; `seen` is the observation before the action."""

    first: Any
    task: Any
    before: Any
    seen: Any
    action: Any
    after: Any
    out: Any


def act(script, env, state, coins, follows):
    """Returns the script's action, or a random one with probability 1 - `follows`."""
    random = (coins[0] * env.spec.space.size).astype(jnp.int32)
    return jnp.where(coins[1] < follows, script(env, state, coins[2]), random)


def seek(env, state, coin):
    """Planning: moves toward the goal, x first, and collects it."""
    (x, y), (goal_x, goal_y) = (jnp.divmod(n, env.size) for n in (state.node, state.goal))
    vertical = jnp.where(y < goal_y, 0, jnp.where(y > goal_y, 1, 4))
    return jnp.where(x < goal_x, 3, jnp.where(x > goal_x, 2, vertical))


def walk(env, state, coin):
    """MineMaze: walks through the rooms on a random side, to a random door."""
    side, cell = jnp.where(coin < 0.5, LEFT, RIGHT), (state.progress - 1) % 6
    move = jnp.where(cell == 1, side, jnp.where(cell == 4, FORWARD - state.side, FORWARD))
    return jnp.where(state.progress == 0, RIGHT, jnp.where(state.progress == env.end, side, move))


def randomness(seed, steps, keys_per_step):
    keys = jr.split(jr.key(seed), (len(FOLLOWS), steps, keys_per_step))
    return keys, np.random.default_rng(seed).uniform(size=(len(FOLLOWS), steps, 3))


@partial(jax.jit, static_argnums=(0, 1))
@partial(jax.vmap, in_axes=(None, None, 0, 0, 0))
def play(env, script, keys, coins, follows):
    """Plays one environment, with a new task after every episode."""

    def start(keys):
        task = env.sample_task(keys[0])
        return True, task, *env.reset(keys[1], task)

    def step(carry, draws):
        (_, task, before, _), (keys, coins) = carry, draws
        action = act(script, env, before, coins, follows)
        after, out = env.step(keys[0], task, before, action)
        choose = partial(jnp.where, out.terminated | out.truncated)
        next_carry = jax.tree.map(choose, start(keys[1:]), (False, task, after, out.obs))
        return next_carry, Record(*carry, action, after, out)

    return jax.lax.scan(step, start(keys[0]), (keys, coins))[1]


def record(env, script, steps):
    """Returns the records of all environments, one environment after the other, as numpy arrays."""
    records = play(env, script, *randomness(0, steps, 3), FOLLOWS)
    return jax.tree.map(np.concatenate, jax.device_get(records))


def assert_equal(ours, expected):
    """Asserts that each of our arrays equals the corresponding column of `expected`."""
    for array, column in zip(ours, zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(array, np.array(column, array.dtype))


@pytest.mark.parametrize(
    "env",
    [
        TMaze(),
        TMaze(signals=(1, 50)),
        TMaze(signals=(), noise_up=0.7, noise_down=0.5),
        TMaze(length=7, signals=(0, 6)),
        TMaze(length=3, signals=(), noise_up=0.9, noise_down=0.0),
    ],
    ids=str,
)
def test_tmaze_equals_its_twin(env):
    twin, expected = twins.TMazeTwin(env.length, env.signals), []
    steps = record(env, lambda *_: 0, 350)
    draws = (steps.first, *steps.task, steps.before.noise, steps.action, steps.after.noise)
    for first, door_up, signals, noise, action, next_noise in zip(*draws, strict=True):
        assert len(signals) == 0 or door_up == DOORS[len(signals)](*signals)
        seen = twin.reset(signals, door_up, noise) if first else obs
        obs, *rest = twin.step(action, next_noise)
        expected.append((seen, obs, *rest))
    assert_equal((steps.seen, *steps.out), expected)


@pytest.mark.parametrize(
    "env", [Planning(), Planning(4), Planning(show_labels=False), Planning(2, 7)], ids=str
)
def test_planning_equals_its_twin(env):
    twin, expected = twins.PlanningTwin(env.size, env.horizon, env.show_labels), []
    steps = record(env, seek, 350)
    draws = (steps.first, steps.task, *steps.before[:2], steps.action, steps.after.goal)
    for first, labels, node, goal, action, next_goal in zip(*draws, strict=True):
        seen = twin.reset(labels, node, goal) if first else obs
        assert (twin.node, twin.goal) == (node, goal)
        obs, *rest = twin.step(action, next_goal)
        expected.append((seen, obs, *rest))
    assert_equal((steps.seen, *steps.out), expected)
    assert steps.out.reward.sum() > 200


@pytest.mark.parametrize("env", [MineMaze(), MineMaze(rooms=2, timeout=15)], ids=str)
def test_minemaze_equals_its_twin(env):
    twin, expected = twins.MineMazeTwin(env.rooms, env.timeout), []
    steps = record(env, walk, 450)
    draws = (steps.first, steps.task, steps.before.kinds, steps.action)
    for first, green, kinds, action in zip(*draws, strict=True):
        seen = twin.reset(green, kinds) if first else name
        name, *rest = twin.step(action)
        expected.append((PICTURES[seen], PICTURES[name], *rest, views.VIEWS.index(name)))
    view = np.asarray(jax.jit(jax.vmap(env.view))(steps.task, steps.after))
    assert_equal((steps.seen, *steps.out, view), expected)
    assert {4, -3} <= set(steps.out.reward.tolist()) and steps.out.truncated.any()


@pytest.mark.parametrize("call", [199, 200, 201])
def test_the_200th_call_ends_an_episode_even_if_a_door_is_chosen(call):
    env, twin = MineMaze(), twins.MineMazeTwin()
    path = [RIGHT, *[FORWARD, LEFT, FORWARD, FORWARD, RIGHT, FORWARD] * 16]
    path += [FORWARD] * (call - 1 - len(path))

    def run(green, door):
        start, _ = env.reset(jr.key(3), green)
        actions = jnp.append(jnp.array(path), door)[:200]
        end, out = jax.lax.scan(lambda s, a: env.step(jr.key(0), green, s, a), start, actions)
        return end.kinds, out[1:]

    greens, doors = np.array([True, True, False, False]), np.array([LEFT, RIGHT] * 2)
    kinds, outs = jax.device_get(jax.jit(jax.vmap(run))(greens, doors))
    for i in range(4):
        twin.reset(greens[i], kinds[i])
        expected = [twin.step(action)[1:] for action in [*path, doors[i]][:200]]
        assert_equal([out[i] for out in outs], expected)
        in_time = (4 if (doors[i] == RIGHT) == greens[i] else -3, True, False)
        assert expected[-1] == (in_time if call == 199 else (0, False, True))


@partial(jax.jit, static_argnums=0)
@partial(jax.vmap, in_axes=(None, 0, 0, 0))
def play_meta(meta, keys, coins, follows):
    def step(state, draws):
        action = act(walk, meta.env, state.inner, draws[1], follows)
        after, out = meta.step(draws[0][0], state, action)
        return after, (state, action, out, after)

    return jax.lax.scan(step, meta.reset(keys[0, 0]), (keys, coins))[1]


@pytest.mark.parametrize("episodes", [1, 2, 4])
def test_meta_episodes_equal_their_twin(episodes):
    twin, maze = twins.MetaTwin(episodes), twins.MineMazeTwin(1, 11)
    meta = MetaEnv(MineMaze(rooms=1, timeout=11), episodes)
    records = jax.device_get(play_meta(meta, *randomness(1, 350, 1), FOLLOWS))
    for i in range(len(FOLLOWS)):
        before, actions, out, after = jax.tree.map(lambda x, i=i: x[i], records)
        draws = (before.task, before.inner.kinds, actions, after.task, after.inner.kinds)
        expected, task_done = [], True
        for green, kinds, action, next_green, next_kinds in zip(*draws, strict=True):
            if task_done:
                obs = twin.reset(PICTURES[maze.reset(green, kinds)])
            seen, (name, _, *ends) = obs, maze.step(action)
            start = PICTURES[maze.reset(next_green, next_kinds)] if any(ends) else None
            next_obs, obs, episode_done, task_done = twin.step(PICTURES[name], any(ends), start)
            expected.append((seen, next_obs, *ends, episode_done, task_done))
        assert_equal((before.obs, out.next_obs, *out[2:]), expected)
        assert out.task_done.sum() > 5
