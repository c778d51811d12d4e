"""Every environment against its independent numpy twin, step by step, with the same random draws.

The compiled side plays many episodes in one scan; its draws (tasks, noise, goals, kinds of rooms) are then
fed to the twin, which must see and earn exactly the same.
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


class Record(NamedTuple):
    """One step: the task, what it started from (first of an episode or not) and what it led to."""

    task: Any
    first: Any
    before: Any
    seen: Any
    action: Any
    after: Any
    out: Any


@partial(jax.jit, static_argnums=(0, 2, 3, 4))
def record(env, key, actor, steps, count=8):
    """Plays `steps` steps in each of `count` environments, a new task after every episode."""

    def begin(key):
        task_key, reset_key = jr.split(key)
        task = env.sample_task(task_key)
        return task, True, *env.reset(reset_key, task)

    def step(carry, key):
        task, first, before, seen = carry
        act_key, step_key, next_key = jr.split(key, 3)
        action = actor(act_key, env, before)
        after, out = env.step(step_key, task, before, action)
        done = out.terminated | out.truncated
        going_on = (task, False, after, out.obs)
        carry = jax.tree.map(lambda a, b: jnp.where(done, a, b), begin(next_key), going_on)
        return carry, Record(task, first, before, seen, action, after, out)

    def play(key):
        start_key, steps_key = jr.split(key)
        return jax.lax.scan(step, begin(start_key), jr.split(steps_key, steps))[1]

    return jax.vmap(play)(jr.split(key, count))


def flat(records):
    """The records of all environments, one after the other, as numpy arrays."""

    def join(leaf):
        return np.asarray(leaf).reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:])

    return jax.tree.map(join, records)


def compare(records, expected):
    """`expected` has (seen, obs, reward, terminated, truncated) of every step."""
    for ours, theirs in zip((records.seen, *records.out), zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(ours, np.array(theirs, ours.dtype))


def uniform(key, env, state):
    return jr.randint(key, (), 0, env.spec.space.size)


def seeker(key, env, state):
    """Planning: usually a move toward the goal (x first), or the collection of it; else any action."""
    random_key, coin_key = jr.split(key)
    offset = jnp.stack(jnp.divmod(state.goal, env.size)) - jnp.stack(
        jnp.divmod(state.node, env.size)
    )
    dx, dy = jnp.sign(offset)
    move = jnp.where(dx != 0, jnp.where(dx > 0, 3, 2), jnp.where(dy > 0, 0, 1))
    straight = jnp.where(state.node == state.goal, 4, move)
    return jnp.where(jr.bernoulli(coin_key, 0.8), straight, uniform(random_key, env, state))


def walker(key, env, state, sure=0.9):
    """MineMaze: usually an action that leads on, on any side and to any door; else any action."""
    random_key, side_key, coin_key = jr.split(key, 3)
    side = jnp.where(jr.bernoulli(side_key), LEFT, RIGHT)
    place = (state.progress - 1) % 6
    on = jnp.where(place == 1, side, jnp.where(place == 4, FORWARD - state.side, FORWARD))
    on = jnp.where(state.progress == 0, RIGHT, jnp.where(state.progress == env.end, side, on))
    return jnp.where(jr.bernoulli(coin_key, sure), on, uniform(random_key, env, state))


@pytest.mark.parametrize(
    "env",
    [
        TMaze(),
        TMaze(signals=(1, 50)),
        TMaze(signals=(), noise_up=0.7, noise_down=0.5),
        TMaze(length=2),
        TMaze(length=7, signals=(0, 6)),
        TMaze(length=3, signals=(), noise_up=0.9, noise_down=0.0),
    ],
    ids=str,
)
def test_tmaze_equals_its_twin(env):
    twin, expected = twins.TMazeTwin(env.length, env.signals), []
    steps = flat(record(env, jr.key(0), uniform, 350))
    draws = (steps.first, *steps.task, steps.before.noise, steps.action, steps.after.noise)
    for first, door_up, signals, noise, action, next_noise in zip(*draws, strict=True):
        if len(signals):
            assert door_up == DOORS[len(signals)](*signals)
        seen = twin.reset(signals, door_up, noise) if first else obs
        obs, *rest = twin.step(action, next_noise)
        expected.append((seen, obs, *rest))
    compare(steps, expected)


@pytest.mark.parametrize("actor", [uniform, seeker])
@pytest.mark.parametrize(
    "env",
    [Planning(), Planning(size=4), Planning(show_labels=False), Planning(size=2, horizon=7)],
    ids=str,
)
def test_planning_equals_its_twin(env, actor):
    twin, expected = twins.PlanningTwin(env.size, env.horizon, env.show_labels), []
    steps = flat(record(env, jr.key(1), actor, 250))
    draws = (steps.first, steps.task, *steps.before[:2], steps.action, steps.after.goal)
    for first, labels, node, goal, action, next_goal in zip(*draws, strict=True):
        seen = twin.reset(labels, node, goal) if first else obs
        assert (twin.node, twin.goal) == (node, goal)
        obs, *rest = twin.step(action, next_goal)
        expected.append((seen, obs, *rest))
    compare(steps, expected)
    assert steps.out.reward.sum() > (100 if actor is seeker else 5)


@pytest.mark.parametrize("actor", [uniform, walker])
@pytest.mark.parametrize(
    "env", [MineMaze(), MineMaze(rooms=2), MineMaze(rooms=2, timeout=15)], ids=str
)
def test_minemaze_equals_its_twin(env, actor):
    twin, sheet, expected = twins.MineMazeTwin(env.rooms, env.timeout), views.sheet(), []
    steps = flat(record(env, jr.key(2), actor, 420))
    draws = (steps.first, steps.task, steps.before.kinds, steps.action)
    for first, green, kinds, action in zip(*draws, strict=True):
        seen = views.VIEWS.index(twin.reset(green, kinds)) if first else view
        name, *rest = twin.step(action)
        view = views.VIEWS.index(name)
        expected.append((sheet[seen], sheet[view], *rest, view))
    *expected, named = zip(*expected, strict=True)
    compare(steps, zip(*expected, strict=True))
    index = jax.jit(jax.vmap(env.view))(steps.task, steps.after)
    np.testing.assert_array_equal(index, named)


@pytest.mark.parametrize("call", [199, 200, 201])
def test_the_200th_call_ends_an_episode_even_if_a_door_is_chosen(call):
    """A door chosen on call 199 still counts, on call 200 it does not; all tasks and doors at once."""
    env, twin = MineMaze(), twins.MineMazeTwin()
    room = [FORWARD, LEFT, FORWARD, FORWARD, RIGHT, FORWARD]
    walk = [RIGHT, *room * 16, *[FORWARD] * (call - 1 - 97)]

    @jax.vmap
    def play(green, door):
        actions = jnp.append(jnp.array(walk), door)[:200]
        state, _ = env.reset(jr.key(3), green)
        end, out = jax.lax.scan(lambda s, a: env.step(jr.key(0), green, s, a), state, actions)
        return end.kinds, out[1:]

    greens, doors = np.array([True, True, False, False]), np.array([LEFT, RIGHT] * 2)
    kinds, (reward, terminated, truncated) = jax.jit(play)(greens, doors)
    for i, (green, door) in enumerate(zip(greens, doors, strict=True)):
        twin.reset(green, kinds[i].tolist())
        steps = [twin.step(action)[1:] for action in [*walk, door][:200]]
        theirs = np.array(steps, np.float32).T
        np.testing.assert_array_equal(np.stack([reward[i], terminated[i], truncated[i]]), theirs)
    prizes = [-3, 4, 4, -3] if call == 199 else [0] * 4
    np.testing.assert_array_equal(reward[:, -1], prizes)
    np.testing.assert_array_equal(terminated[:, -1], call == 199)
    np.testing.assert_array_equal(truncated[:, -1], call != 199)
    assert not truncated[:, :-1].any()
    assert not terminated[:, :-1].any()


@partial(jax.jit, static_argnums=(0, 2))
def record_meta(meta, key, steps):
    """(state before, MetaStep, state after, action) of every step, for 4 environments."""

    def step(state, key):
        act_key, step_key = jr.split(key)
        action = walker(act_key, meta.env, state.inner)
        after, out = meta.step(step_key, state, action)
        return after, (state, out, after, action)

    def play(key):
        return jax.lax.scan(step, meta.reset(key), jr.split(key, steps))[1]

    return jax.vmap(play)(jr.split(key, 4))


@pytest.mark.parametrize("episodes", [1, 2, 4])
def test_meta_episodes_equal_their_twin(episodes):
    env = MineMaze(rooms=1, timeout=14)
    twin, inner, sheet = twins.MetaTwin(episodes), twins.MineMazeTwin(1, 14), views.sheet()
    records = jax.device_get(record_meta(MetaEnv(env, episodes), jr.key(4), 500))
    for i in range(4):
        before, out, after, actions = jax.tree.map(lambda x, i=i: x[i], records)
        first, expected, fresh = sheet[0], [], True
        for green, kinds, action, green_after, kinds_after in zip(
            before.task, before.inner.kinds, actions, after.task, after.inner.kinds, strict=True
        ):
            if fresh:
                seen = twin.reset(sheet[views.VIEWS.index(inner.reset(green, kinds))])
            name, _, terminated, truncated = inner.step(action)
            done = terminated or truncated
            view = sheet[views.VIEWS.index(name)]
            if done:
                first = sheet[views.VIEWS.index(inner.reset(green_after, kinds_after))]
            next_obs, obs, episode_done, fresh = twin.step(view, done, first)
            expected.append((seen, next_obs, terminated, truncated, episode_done, fresh))
            seen = obs
        ours = (before.obs, out.next_obs, *out[2:])
        for mine, theirs in zip(ours, zip(*expected, strict=True), strict=True):
            np.testing.assert_array_equal(mine, np.array(theirs, mine.dtype))
        going_on = ~out.task_done[:-1]
        np.testing.assert_array_equal(after.obs[:-1], before.obs[1:])
        np.testing.assert_array_equal(after.task[:-1][going_on], before.task[:-1][going_on])
        assert out.terminated.sum() > 5 and out.truncated.sum() > 5 and out.task_done.sum() > 5
