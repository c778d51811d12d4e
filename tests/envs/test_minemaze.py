"""MC-LS: the route through the rooms, valid actions, doors, images and invalid settings."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from PIL import Image

from splagger.envs import MineMaze, views

LEFT, FORWARD, RIGHT = range(3)
GREEN, RED = jnp.array(True), jnp.array(False)
COUNT = 4096
# Views in a room, by side, and the actions that have an effect there; "*": the view shows the kind.
ROOM_VIEWS = {
    LEFT: ("(0,0)*", "(0,1)*", "(-1,1)*", "(-1,2)", "(-1,3)", "(0,3)"),
    RIGHT: ("(0,0)*", "(0,1)*", "(1,1)*", "(1,2)", "(1,3)", "(0,3)"),
}
VALID = {
    LEFT: ({FORWARD}, {LEFT, RIGHT}, {FORWARD}, {FORWARD}, {RIGHT}, {FORWARD}),
    RIGHT: ({FORWARD}, {LEFT, RIGHT}, {FORWARD}, {FORWARD}, {LEFT}, {FORWARD}),
}


def room(side):
    return [FORWARD, side, FORWARD, FORWARD, 2 * FORWARD - side, FORWARD]


@partial(jax.jit, static_argnums=0)
def walk(env, task, kinds, actions):
    """Returns, per step, (state before, step, view before, results of all actions, observation after)."""
    start, _ = env.reset(jr.key(0), task)

    def step(state, action):
        after, out = env.step(jr.key(0), task, state, action)
        every = jax.vmap(env.step, in_axes=(None, None, None, 0))(
            jr.key(0), task, state, jnp.arange(3)
        )
        return after, (state, out, env.view(task, state), every, env.observe(task, after))

    return jax.lax.scan(step, start._replace(kinds=kinds), actions)[1]


def named(view):
    return [views.VIEWS[index] for index in view]


@jax.jit
@jax.vmap
def starts(key):
    env = MineMaze()
    task_key, key = jr.split(key)
    task = env.sample_task(task_key)
    return task, env.reset(key, task)[0].kinds


def test_tasks_and_kinds_of_rooms_are_independent_fair_coins():
    task, kinds = starts(jr.split(jr.key(0), COUNT))
    coins = 2.0 * np.column_stack([task, kinds]) - 1
    bound = 4.5 / COUNT**0.5
    assert coins.shape == (COUNT, 17)
    assert np.abs(coins.mean(0)).max() < bound
    correlation = coins.T @ coins / COUNT
    assert np.abs(correlation[~np.eye(17, dtype=bool)]).max() < bound


def test_kinds_are_resampled_in_every_episode_of_a_task():
    env = MineMaze()
    kinds = jax.jit(jax.vmap(lambda key: env.reset(key, GREEN)[0].kinds))(jr.split(jr.key(1), 64))
    assert len({tuple(row) for row in kinds.tolist()}) > 60


@pytest.mark.parametrize("kind", [0, 1], ids=["iron", "diamond"])
@pytest.mark.parametrize("side", [LEFT, RIGHT], ids=["left", "right"])
def test_the_route_through_rooms_shows_the_expected_views(side, kind):
    env, material = MineMaze(rooms=2), ("iron", "diamond")[kind]
    actions = np.array([RIGHT, *room(side) * 2, RIGHT])
    _, out, view, _, _ = walk(env, GREEN, np.full(2, bool(kind)), actions)
    along = [name.replace("*", f" {material}") for name in ROOM_VIEWS[side]]
    assert named(view) == ["green", *along, *along, "end"]
    np.testing.assert_array_equal(out.terminated, [False] * 13 + [True])


@pytest.mark.parametrize("side", [LEFT, RIGHT], ids=["left", "right"])
def test_the_wrong_side_yields_no_reward_but_the_route_continues(side):
    env, kinds = MineMaze(), np.random.default_rng(0).integers(2, size=16).astype(bool)
    actions = np.array([RIGHT, *room(side) * 16, LEFT])
    before, out, _, _, _ = walk(env, RED, kinds, actions)
    expected = np.full(98, 0.1, np.float32)
    expected[2:-1:6] = np.where(kinds == (side == RIGHT), 0.1, 0)
    expected[-1] = 4
    np.testing.assert_array_equal(out.reward, expected)
    np.testing.assert_array_equal(before.progress, np.arange(98))
    np.testing.assert_array_equal(before.kinds, kinds[None].repeat(98, 0))


@pytest.mark.parametrize("side", [LEFT, RIGHT], ids=["left", "right"])
def test_invalid_moves_change_nothing_but_the_time(side):
    env = MineMaze(rooms=2)
    actions = np.array([RIGHT, *room(side) * 2, RIGHT])
    before, _, _, (after, out), _ = walk(env, GREEN, np.array([True, False]), actions)
    valid = [{RIGHT}, *VALID[side] * 2, {LEFT, RIGHT}]
    for t, allowed in enumerate(valid):
        for action in range(3):
            moved = after.progress[t, action] != before.progress[t] or out.terminated[t, action]
            assert moved == (action in allowed), (t, action)
            if action not in allowed:
                assert out.reward[t, action] == 0
                assert after.side[t, action] == before.side[t]
                np.testing.assert_array_equal(after.kinds[t, action], before.kinds[t])
            assert after.time[t, action] == t + 1


@pytest.mark.parametrize(("task", "door"), [(GREEN, RIGHT), (RED, LEFT)], ids=["green", "red"])
def test_the_signal_determines_the_door(task, door):
    env = MineMaze(rooms=1)
    actions = np.array([RIGHT, *room(LEFT), FORWARD])
    _, _, _, (_, out), _ = walk(env, task, np.array([False]), actions)
    expected = [0.0, 0.0, 0.0]
    expected[door], expected[2 - door] = 4.0, -3.0
    np.testing.assert_array_equal(out.reward[-1], expected)
    np.testing.assert_array_equal(out.terminated[-1], [True, False, True])


def test_only_the_first_view_reveals_the_task():
    actions = np.array([LEFT, RIGHT, *room(LEFT) * 2, FORWARD])
    kinds = np.array([False, True])
    green, red = (named(walk(MineMaze(rooms=2), task, kinds, actions)[2]) for task in (GREEN, RED))
    assert green[:2] == ["green"] * 2
    assert red[:2] == ["red"] * 2
    assert green[2:] == red[2:]


def test_observe_equals_the_observation_of_the_step():
    actions = np.random.default_rng(1).integers(3, size=100)
    _, out, _, _, observed = walk(MineMaze(rooms=2), GREEN, np.array([False, True]), actions)
    np.testing.assert_array_equal(out.obs, observed)


@pytest.mark.parametrize("timeout", [1, 5])
def test_the_last_step_before_the_time_limit_has_no_effect(timeout):
    actions = np.array([RIGHT, *room(LEFT)])[:timeout]
    env = MineMaze(rooms=1, timeout=timeout)
    before, out, view, _, _ = walk(env, GREEN, np.array([False]), actions)
    np.testing.assert_array_equal(out.truncated, np.arange(1, timeout + 1) == timeout)
    assert out.reward[-1] == 0
    np.testing.assert_array_equal(out.obs[-1], views.sheet()[view[-1]])
    assert before.progress[-1] == timeout - 1


def test_images_in_a_folder_replace_the_drawn_ones(tmp_path):
    for name in views.VIEWS:
        image = Image.fromarray(255 - views.draw(name))
        image.save(tmp_path / f"{views.filename(name)}.png")
    env = MineMaze(images=str(tmp_path))
    _, obs = env.reset(jr.key(0), GREEN)
    np.testing.assert_array_equal(obs, views.load(tmp_path)[0])
    assert not np.array_equal(obs, views.sheet()[0])


def test_larger_images_give_larger_observations():
    env = MineMaze(resolution=20)
    _, obs = env.reset(jr.key(0), RED)
    assert env.spec.obs_size == 1200
    np.testing.assert_array_equal(obs, views.sheet(20)[1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rooms": 0}, "^MineMaze: rooms must be a positive integer, got 0"),
        ({"timeout": -1}, "^MineMaze: timeout must be a positive integer, got -1"),
        ({"resolution": 0}, "^MineMaze: resolution must be a positive integer, got 0"),
        ({"resolution": 15}, "resolution must be a positive multiple of 10, got 15"),
    ],
)
def test_invalid_mazes_are_refused_by_field_and_value(settings, message):
    with pytest.raises(ValueError, match=message):
        MineMaze(**settings)


def test_a_folder_without_images_is_refused_by_name(tmp_path):
    missing = tmp_path / "nowhere"
    with pytest.raises(ValueError, match=r"MineMaze.*green.*nowhere"):
        MineMaze(images=str(missing))
