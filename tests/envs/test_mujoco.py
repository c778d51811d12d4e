"""Robots: exact numbers, one call per batch, tasks, episode ends, failures and images."""

import functools as ft
import threading

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import Cheetah, MetaEnv, Walker
from splagger.envs.mujoco import camera, cheetah, physics, simulations, walker
from splagger.envs.mujoco.exact import from_float64, narrow, to_float64, widen
from splagger.envs.mujoco.physics import RobotState
from splagger.envs.mujoco.simulations import THREADS, Simulations

ENVS = pytest.mark.parametrize("env", [Cheetah(), Walker()], ids=["cheetah", "walker"])
STEPS = 12
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.17e-38, 1.1754943508222875e-38, 3.5e38]
TIES = [
    1 + 2.0**-24,
    1 + 3 * 2.0**-24,
    1 + 2.0**-24 + 2.0**-50,
    2 - 2.0**-25,
    3.4028235677973366e38,
]


def doubles():
    rng = np.random.default_rng(0)
    spread = rng.normal(size=20_000) * 10 ** rng.uniform(-45, 45, 20_000)
    return np.concatenate([spread, SPECIAL, TIES, np.negative(TIES)])


def flushed(numbers):
    """Converts to float32; numbers below the normal range become 0."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = numbers.astype(np.float32)
    tiny = np.abs(numbers) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), rounded), rounded)


def test_narrow_rounds_as_numpy():
    numbers = doubles()
    found = np.asarray(narrow(jnp.asarray(from_float64(numbers))))
    np.testing.assert_array_equal(found, flushed(numbers))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(flushed(numbers)))


def test_widen_loses_nothing():
    numbers = flushed(doubles())
    found = to_float64(np.asarray(widen(jnp.asarray(numbers))))
    np.testing.assert_array_equal(found, numbers.astype(np.float64))
    np.testing.assert_array_equal(narrow(widen(jnp.asarray(numbers))), numbers)


def test_words_on_the_host_are_the_same_numbers():
    numbers = doubles()[:20_000].reshape(2, -1)
    words = from_float64(numbers)
    assert (words.shape, words.dtype) == ((*numbers.shape, 2), np.uint32)
    np.testing.assert_array_equal(to_float64(words), numbers)


@ft.partial(jax.jit, static_argnums=(0, 1))
def play(env, axes, key):
    """Plays random tasks with random actions and without resets; returns (tasks, last states, steps [axes, T])."""

    def one(key):
        task_key, reset_key, action_key = jr.split(key, 3)
        task = env.sample_task(task_key)
        state, _ = env.reset(reset_key, task)
        actions = jr.normal(action_key, (STEPS, 6))
        state, out = jax.lax.scan(lambda s, a: env.step(key, task, s, a), state, actions)
        return task, state, out

    for _ in axes:
        one = jax.vmap(one)
    return one(jr.split(key, axes) if axes else key)


def assert_same_bits(one, other):
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(one), jax.device_get(other))


@pytest.mark.parametrize(
    "env",
    [Walker(), pytest.param(Cheetah(), marks=pytest.mark.slow)],
    ids=["walker", "cheetah"],
)
def test_a_batch_of_240_equals_single_environments_and_is_one_call_per_step(env, monkeypatch):
    calls, step = [], Simulations.step
    spy = lambda self, numbers, *rest: calls.append(len(numbers)) or step(self, numbers, *rest)  # noqa: E731
    monkeypatch.setattr(Simulations, "step", spy)
    together = jax.device_get(play(env, (15, 16), jr.key(0)))
    assert calls == [240] * STEPS
    alone = [jax.device_get(play(env, (), key)) for key in jr.split(jr.key(0), 240)]
    stack = lambda *leaves: np.stack(leaves).reshape(15, 16, *leaves[0].shape)  # noqa: E731
    assert_same_bits(jax.tree.map(stack, *alone), together)
    assert calls[STEPS:] == [1] * 240 * STEPS


@ENVS
def test_any_number_of_threads_gives_the_same_bits(env, monkeypatch):
    found = []
    for threads in ("1", "2", "7"):
        monkeypatch.setenv(THREADS, threads)
        found.append(jax.device_get(play(env, (20,), jr.key(1))))
    assert_same_bits(found[0], found[1])
    assert_same_bits(found[0], found[2])


@ENVS
def test_several_threads_may_step_at_once(env):
    expected = jax.device_get([play(env, (16,), jr.key(seed)) for seed in range(4)])
    found = [None] * 4

    def work(seed):
        found[seed] = jax.device_get(play(env, (16,), jr.key(seed)))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert_same_bits(found, expected)


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_an_invalid_number_of_threads_is_refused(text, monkeypatch):
    monkeypatch.setenv(THREADS, text)
    env = Cheetah(horizon=3)
    with pytest.raises(
        ValueError, match=f"SPLAGGER_THREADS must be a positive integer, got '{text}'"
    ):
        jax.eval_shape(
            env.step, jr.key(0), jnp.ones(()), env.reset(jr.key(0), jnp.ones(()))[0], jnp.zeros(6)
        )


def test_the_number_of_threads_has_a_default(monkeypatch):
    monkeypatch.delenv(THREADS, raising=False)
    assert simulations.threads() >= 1


@ENVS
def test_resets_compute_no_physics(env, monkeypatch):
    monkeypatch.setattr(Simulations, "step", None)
    monkeypatch.setattr(physics, "load", None)
    state, obs = jax.jit(env.reset)(jr.key(1), env.sample_task(jr.key(0)))
    assert obs.shape == (17,) and state.time == 0


@pytest.mark.parametrize("env, robot", [(Cheetah(), cheetah.ROBOT), (Walker(), walker.ROBOT)])
def test_first_states_are_the_initial_pose_with_the_specified_noise(env, robot):
    starts = jax.vmap(lambda key: env.reset(key, env.sample_task(key))[0].physics)
    numbers = to_float64(np.asarray(jax.jit(starts)(jr.split(jr.key(0), 4000))))
    position, velocity = numbers[:, 1:10] - simulations.load(robot).qpos0, numbers[:, 10:19]
    scale = env.reset_noise
    assert scale == (0.1 if isinstance(env, Cheetah) else 0.005)
    for uniform in [position] + [velocity] * isinstance(env, Walker):
        assert 0.99 * scale < np.abs(uniform).max() <= scale * (1 + 1e-4)
        np.testing.assert_allclose(uniform.std(axis=0), scale / np.sqrt(3), rtol=0.05)
        np.testing.assert_allclose(uniform.mean(axis=0), 0, atol=0.05 * scale)
    if isinstance(env, Cheetah):
        np.testing.assert_allclose(velocity.std(axis=0), 0.1, rtol=0.05)
        assert np.abs(velocity).max() > 0.3
    np.testing.assert_array_equal(numbers[:, [0, *range(19, 28)]], 0)


def test_both_directions_are_equally_likely():
    tasks = np.asarray(jax.vmap(Cheetah().sample_task)(jr.split(jr.key(0), 4000)))
    assert set(tasks.tolist()) == {-1.0, 1.0} and abs(tasks.mean()) < 0.06


def test_factors_are_powers_with_uniform_exponents():
    tasks = np.asarray(jax.jit(jax.vmap(Walker().sample_task))(jr.split(jr.key(0), 20_000)))
    assert tasks.shape == (20_000, 65)
    bases = np.array([1.5] * 56 + [1.3] * 9)
    exponents = np.log(tasks.astype(np.float64)) / np.log(bases)
    assert np.abs(exponents).max() <= 3 + 1e-5
    np.testing.assert_allclose(
        np.quantile(exponents, [0.1, 0.5, 0.9], axis=0).T, [[-2.4, 0, 2.4]] * 65, atol=0.12
    )
    np.testing.assert_allclose(exponents.std(axis=0), 6 / np.sqrt(12), rtol=0.02)
    assert np.abs(np.corrcoef(exponents.T) - np.eye(65)).max() < 0.05
    assert 0.296 < tasks[:, :56].min() < 0.3 and 3.36 < tasks[:, :56].max() < 3.3751
    assert 0.455 < tasks[:, 56:].min() < 0.458 and 2.19 < tasks[:, 56:].max() < 2.1971


def test_factors_change_the_model_and_its_derived_constants():
    factors = np.asarray(Walker().sample_task(jr.key(3)))
    three = Simulations(walker.ROBOT, 3, 2)
    numbers = np.zeros((3, 28))
    numbers[:, 2] = 1.25
    three.step(numbers, np.zeros((3, 6)), np.stack([np.ones(65), factors, np.ones(65)]))
    nominal, model = simulations.load(walker.ROBOT), three.batch.get_model(1)
    np.testing.assert_array_equal(model.body_mass, nominal.body_mass * factors[:8].astype(float))
    ratios = model.geom_friction / nominal.geom_friction
    np.testing.assert_allclose(ratios.ravel(), factors[32:56], rtol=1e-6)
    np.testing.assert_allclose(model.body_subtreemass[1], model.body_mass.sum())
    assert np.abs(model.dof_invweight0 / nominal.dof_invweight0 - 1).min() > 0.01
    assert np.abs(model.dof_M0 / nominal.dof_M0 - 1).min() > 0.01
    for other in (0, 2):
        np.testing.assert_array_equal(three.batch.get_model(other).dof_M0, nominal.dof_M0)


def test_results_do_not_depend_on_earlier_simulations():
    tasks = np.asarray(jax.vmap(Walker().sample_task)(jr.split(jr.key(0), 2)))
    state, _ = Walker().reset(jr.key(0), jnp.asarray(tasks[0]))
    numbers, action = to_float64(np.asarray(state.physics))[None], np.full((1, 6), 0.3)
    used = Simulations(walker.ROBOT, 1, 1)
    first, other, again = [used.step(numbers, action, tasks[i : i + 1])[0] for i in (0, 1, 0)]
    fresh = Simulations(walker.ROBOT, 1, 1).step(numbers, action, tasks[1:])[0]
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(other, fresh)
    assert (first != other).any()


def test_constants_are_derived_once_per_task(monkeypatch):
    four, calls = Simulations(walker.ROBOT, 4, 1), []
    derive = four.batch.set_const
    monkeypatch.setattr(four.batch, "set_const", lambda ids: calls.append(list(ids)) or derive(ids))
    tasks = np.asarray(jax.vmap(Walker().sample_task)(jr.split(jr.key(0), 5)))
    numbers, action = np.zeros((4, 28)), np.zeros((4, 6))
    numbers[:, 2] = 1.25
    for rows in ([0, 1, 2, 3], [0, 1, 2, 3], [0, 4, 2, 4], [0, 4, 2, 4]):
        four.step(numbers, action, tasks[rows])
    assert calls == [[0, 1, 2, 3], [1, 3]]


def test_a_heavier_body_falls_differently():
    """The torques that support a light body cannot support a heavy one."""
    env = Walker()
    factors = jnp.ones((2, 65)).at[0, :32].set(3.375).at[1, :32].set(0.2963)
    state, _ = env.reset(jr.key(0), factors[0])
    actions = jnp.tile(jnp.float32([0.2, -0.3, 0.1] * 2), (60, 1))

    def fall(task):
        step = lambda s, a: env.step(jr.key(0), task, s, a)  # noqa: E731
        return jax.lax.scan(step, state, actions)[1]

    heavy, light = jax.tree.map(lambda x: (x[0], x[1]), jax.jit(jax.vmap(fall))(factors).obs)
    assert np.abs(heavy - light).max() > 0.5
    same = jax.jit(jax.vmap(fall))(jnp.ones((2, 65))).obs
    np.testing.assert_array_equal(same[0], same[1])


def broken(state, number, value):
    words = np.array(state.physics)
    words[number] = from_float64(np.array([value]))[0]
    return RobotState(jnp.asarray(words), state.time)


@ENVS
def test_an_unstable_simulation_truncates_only_its_own_episode(env, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log into the working directory
    task = env.sample_task(jr.key(0))
    state, _ = env.reset(jr.key(0), task)
    states = [state, broken(state, 12, 3e10), state]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    actions = jnp.full((3, 6), 0.1)
    step = jax.jit(jax.vmap(lambda s, a: env.step(jr.key(0), task, s, a)))
    after, out = step(stacked, actions)
    np.testing.assert_array_equal(out.truncated, [False, True, False])
    assert not out.terminated.any()
    assert np.isfinite(out.obs).all() and np.isfinite(out.reward).all()
    np.testing.assert_array_equal(after.physics[1], stacked.physics[1])
    np.testing.assert_array_equal(after.physics[0], after.physics[2])
    assert (after.physics[0] != state.physics).any()
    alone, _ = jax.jit(lambda s, a: env.step(jr.key(0), task, s, a))(state, actions[0])
    np.testing.assert_array_equal(after.physics[0], alone.physics)


@ENVS
def test_non_finite_actions_give_a_non_finite_reward(env):
    """The state stays finite, and the reward reveals the diverged agent."""
    task = env.sample_task(jr.key(0))
    state, _ = env.reset(jr.key(0), task)
    actions = jnp.zeros((3, 6)).at[1, 2].set(jnp.nan).at[2].set(jnp.inf)
    after, out = jax.jit(jax.vmap(lambda a: env.step(jr.key(0), task, state, a)))(actions)
    assert np.isfinite(out.obs).all() and not out.truncated.any()
    np.testing.assert_array_equal(np.isfinite(out.reward), [True, False, False])
    np.testing.assert_array_equal(after.physics[2], after.physics[0])


def test_the_control_is_clipped_but_its_cost_is_not():
    env = Cheetah()
    state, _ = env.reset(jr.key(0), jnp.ones(()))
    actions = jnp.stack([jnp.ones(6), jnp.full(6, 3.0)])
    after, out = jax.jit(jax.vmap(lambda a: env.step(jr.key(0), jnp.ones(()), state, a)))(actions)
    np.testing.assert_array_equal(after.physics[0], after.physics[1])
    np.testing.assert_allclose(out.reward[0] - out.reward[1], 0.05 * 6 * 8, rtol=1e-5)


@ENVS
def test_an_episode_is_truncated_at_its_horizon(env):
    env = type(env)(horizon=4, **({"lowest": -9.0, "steepest": 9.0} if env == Walker() else {}))
    _, _, out = play(env, (), jr.key(0))
    np.testing.assert_array_equal(out.truncated, np.arange(STEPS) == 3)
    assert not out.terminated.any()


def test_the_walkers_second_episode_starts_upright_with_the_same_body():
    env = MetaEnv(Walker(), 2)

    def one(state, key):
        new, out = env.step(key, state, jr.normal(key, (6,)))
        return new, (state.task, new, out)

    start = env.reset(jr.key(0))
    _, (before, after, out) = jax.jit(lambda s: jax.lax.scan(one, s, jr.split(jr.key(1), 200)))(
        start
    )
    done, ended = np.asarray(out.episode_done), np.asarray(out.task_done)
    assert done.sum() >= 4 and ended.sum() >= 2
    np.testing.assert_array_equal(np.flatnonzero(ended), np.flatnonzero(done)[1::2])
    same = (np.asarray(before) == np.asarray(after.task)).all(axis=1)
    np.testing.assert_array_equal(same, ~ended)
    np.testing.assert_allclose(after.obs[done][:, 0], 1.25, atol=0.0051)
    height, angle = np.asarray(out.next_obs)[done].T[:2]
    assert ((height <= 0.8) | (height >= 2) | (np.abs(angle) >= 1)).all()
    np.testing.assert_array_equal(after.obs[:, -1], done & ~ended)
    np.testing.assert_array_equal(after.inner.time[done], 0)


REFUSED = [
    ("base", 0.0),
    ("damping_base", -1.0),
    ("horizon", 0),
    ("spread", -1.0),
    ("spread", 99.0),
]


@pytest.mark.parametrize("name, value", REFUSED)
def test_invalid_walkers_are_refused_by_name_and_value(name, value):
    with pytest.raises(ValueError, match=rf"^Walker: {name} must be .*, got {value}$"):
        Walker(**{name: value})


def drawn(env, state):
    """Returns an image; skips the test if MuJoCo cannot draw."""
    try:
        return env.render(env.sample_task(jr.key(0)), state)
    except ValueError as error:
        if "MuJoCo cannot draw here" not in str(error):
            raise
        pytest.skip(str(error))


@ENVS
def test_images_show_the_pose_of_the_robot(env):
    task = env.sample_task(jr.key(0))
    state, _ = env.reset(jr.key(0), task)
    step = jax.jit(env.step)
    first, later = drawn(env, state), state
    for t in range(15):
        later, _ = step(jr.key(t), task, later, jnp.full(6, 0.5))
    second = drawn(env, later)
    assert first.shape == second.shape == (484, 640, 3) and first.dtype == np.uint8
    np.testing.assert_array_equal(first[:4], 255)
    np.testing.assert_array_equal(drawn(env, state), first)
    assert (first[68:452, 32:608] != second[68:452, 32:608]).any()
    orange = np.abs(first.astype(int) - [214, 94, 0]).sum(axis=2) < 120
    assert orange.sum() > 200


def test_without_opengl_the_error_names_what_is_missing(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(camera, "LIBRARIES", {"egl": "no-such-library"})
    monkeypatch.setattr(camera.platform, "system", lambda: "Linux")
    with pytest.raises(ValueError, match=r"MuJoCo cannot draw here.*libegl1.*MUJOCO_GL"):
        camera._camera.__wrapped__(cheetah.ROBOT)
