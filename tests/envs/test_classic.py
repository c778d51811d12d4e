"""The classic tasks and the endless T-Maze: distributions of tasks, laws of pure environments, invalid settings."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger import ENVS
from splagger.envs import (
    Bandit,
    EndlessTMaze,
    GoalGrid,
    KeyToDoor,
    MetaEnv,
    PointRobot,
    TabularMDP,
)
from tests.close import assert_close

SMALL = {
    "bandit": Bandit(3, 6),
    "tabular": TabularMDP(4, 3, 3),
    "grid": GoalGrid(4, 5),
    "key": KeyToDoor(3, 6),
    "point": PointRobot(6, 0.5, 0.3),
    "endless": EndlessTMaze(3, 2),
}
STEPS, BATCH = 14, 3
every_env = pytest.mark.parametrize("name", SMALL)


def actions(env):
    keys = jr.split(jr.key(3), (BATCH, STEPS))
    noise = jax.vmap(jax.vmap(env.spec.space.noise))(keys)
    return noise if env.spec.space.zero().ndim else noise.argmax(-1).astype(jnp.int32)


@ft.cache
def play(name, alone=False):
    """Returns (states before, steps, states after) of a batch; if `alone`, each environment is run by itself."""
    meta = MetaEnv(SMALL[name], 2)

    def one(key, actions):
        keys = jr.split(key, STEPS + 1)

        def step(state, draws):
            after, out = meta.step(draws[0], state, draws[1])
            return after, (state, out, after)

        return jax.lax.scan(step, meta.reset(keys[0]), (keys[1:], actions))[1]

    keys, chosen = jr.split(jr.key(0), BATCH), actions(meta.env)
    if not alone:
        return jax.device_get(jax.jit(jax.vmap(one))(keys, chosen))
    single = jax.jit(one)
    results = [jax.device_get(single(keys[i], chosen[i])) for i in range(BATCH)]
    return jax.tree.map(lambda *x: np.stack(x), *results)


@pytest.mark.parametrize(
    "name", ["bandit", *(pytest.param(n, marks=pytest.mark.slow) for n in ("key", "tabular"))]
)
def test_a_batch_equals_each_environment_alone(name):
    assert_close(play(name), play(name, alone=True), rtol=1e-6, atol=1e-6)


@every_env
def test_a_task_stays_until_its_last_episode_ends(name):
    before, out, after = play(name)
    changed = np.zeros(out.task_done.shape, bool)
    for old, new in zip(*map(jax.tree.leaves, (before.task, after.task)), strict=True):
        changed |= (old != new).reshape(*changed.shape, -1).any(-1)
    assert not (changed & ~out.task_done).any()
    assert out.episode_done.sum() > out.task_done.sum() > 0


@every_env
def test_every_episode_starts_in_the_same_state(name):
    """Except for the noise of a maze and for its signal, which is the task."""
    _, out, after = play(name)
    env = SMALL[name]
    start, _ = jax.device_get(env.reset(jr.key(0), env.sample_task(jr.key(1))))
    for field, value in start._asdict().items():
        if field not in ("noise", "signal"):
            starts = getattr(after.inner, field)[out.episode_done]
            np.testing.assert_array_equal(starts, np.broadcast_to(value, starts.shape))


@every_env
def test_episodes_have_their_length(name):
    _, out, _ = play(name)
    horizon = SMALL[name].spec.horizon
    for done in out.episode_done:
        lengths = np.diff(np.flatnonzero(done), prepend=-1)
        fixed = SMALL[name].spec.fixed_length
        assert (lengths == horizon).all() if fixed else (lengths <= horizon).all()


def tasks_of(env, count=4000):
    return jax.device_get(jax.jit(jax.vmap(env.sample_task))(jr.split(jr.key(0), count)))


def test_tasks_have_their_distributions():
    arms = tasks_of(Bandit(2))
    assert np.abs(np.sort(arms.ravel()) - np.linspace(0, 1, arms.size)).max() < 0.03
    mdps = tasks_of(TabularMDP(3, 2))
    # A component of a flat Dirichlet distribution over 3 states has mean 1/3 and variance 1/18.
    assert mdps.transitions.mean() == pytest.approx(1 / 3, abs=1e-3)
    assert mdps.transitions.var() == pytest.approx(1 / 18, rel=0.03)
    assert (mdps.rewards.mean(), mdps.rewards.std()) == pytest.approx((1, 1), abs=0.02)
    goals = tasks_of(PointRobot())
    np.testing.assert_allclose(np.hypot(*goals.T), 1, rtol=1e-6)
    angles = np.sort(np.arctan2(goals[:, 1], goals[:, 0])) / np.pi
    assert np.abs(angles - np.linspace(0, 1, len(angles))).max() < 0.03


def test_goals_and_keys_are_uniform_over_their_cells():
    for env, cells in ((GoalGrid(), 21), (ENVS["dark-room"].env, 81)):
        found, counts = np.unique(tasks_of(env), axis=0, return_counts=True)
        assert {tuple(cell) for cell in found} == set(env.goals) and len(found) == cells
        assert counts.max() < 2 * counts.mean()
    task = tasks_of(KeyToDoor(3))
    pairs, counts = np.unique(np.hstack([task.key, task.door]), axis=0, return_counts=True)
    assert len(pairs) == 9 * 8 and counts.max() < 2 * counts.mean()


def test_goals_of_the_grid_are_not_next_to_the_start():
    assert not {(0, 0), (0, 1), (1, 0), (1, 1)} & set(GoalGrid().goals)


def test_signals_of_the_endless_maze_are_shown_once_per_lap():
    env = EndlessTMaze(length=5, laps=400)
    task = env.sample_task(jr.key(0))
    state, first = env.reset(jr.key(1), task)
    keys = jr.split(jr.key(2), env.spec.horizon)
    _, out = jax.jit(
        lambda: jax.lax.scan(lambda s, k: env.step(k, task, s, jnp.int32(2)), state, keys)
    )()
    obs = np.concatenate([first[None], out.obs])[:-1].reshape(400, 5, 4)
    assert not obs[:, [0, 2, 3, 4], 1].any()
    shown = obs[:, 1, 1] != 0
    assert shown[0] and 0.4 < shown.mean() < 0.6
    assert 0.4 < (obs[shown, 1, 1] > 0).mean() < 0.6
    in_force = obs[np.maximum.accumulate(np.where(shown, np.arange(400), 0)), 1, 1]
    np.testing.assert_array_equal(out.reward[4::5], np.where(in_force > 0, 4, -3))
    assert env.shows_signal(out.obs[0]) and not env.shows_signal(out.obs[1])


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: Bandit(arms=1), "Bandit: arms must be at least 2, got 1"),
        (lambda: Bandit(pulls=0), "Bandit: pulls must be a positive integer, got 0"),
        (lambda: TabularMDP(states=1), "TabularMDP: states must be at least 2, got 1"),
        (
            lambda: GoalGrid(start=(0, 5)),
            r"start must be two coordinates from 0 to 4, got \(0, 5\)",
        ),
        (lambda: GoalGrid(clearance=4), "GoalGrid: clearance 4 leaves no cell for the goal"),
        (lambda: KeyToDoor(size=1), "KeyToDoor: size must be at least 2, got 1"),
        (lambda: PointRobot(radius=0.0), "PointRobot: radius must be positive, got 0.0"),
        (lambda: EndlessTMaze(length=2), "EndlessTMaze: length must be at least 3, got 2"),
        (lambda: EndlessTMaze(change=1.5), "change must be between 0 and 1, got 1.5"),
    ],
)
def test_invalid_settings_are_refused_by_name(create, message):
    with pytest.raises(ValueError, match=message):
        create()


@every_env
def test_pictures_show_every_state(name):
    env = SMALL[name]
    before, _, _ = play(name)
    first, second = (jax.tree.map(lambda x, t=t: x[0, t], before) for t in (0, 1))
    images = [np.asarray(env.render(s.task, s.inner, 0, 2)) for s in (first, second)]
    assert all(image.dtype == np.uint8 and image.shape[2] == 3 for image in images)
    assert all((image[:4] == 255).all() and image.min() < 100 for image in images)
    assert (images[0] != images[1]).any()
