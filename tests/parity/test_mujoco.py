"""Compares our robots with independent simulations: Gymnasium's, and a plain loop over one MjData."""

import functools as ft
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import mujoco
import numpy as np
import pytest

from splagger.envs import Cheetah, Walker
from splagger.envs.mujoco import cheetah, walker
from splagger.envs.mujoco.exact import from_float64, to_float64
from splagger.envs.mujoco.physics import RobotState
from splagger.envs.mujoco.simulations import load

STEPS = 400
ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
PHYSICAL = ("body", "jnt", "dof", "geom", "actuator", "qpos", "exclude", "pair", "eq")
LOOKS = {"geom_rgba", "geom_user", "geom_matid"}


def differences(ours, theirs):
    """Returns name → largest relative difference, for the physical arrays that differ between two models."""
    names = [n for n in dir(ours) if n.startswith(PHYSICAL) and n not in LOOKS]
    pairs = [(n, getattr(ours, n), getattr(theirs, n)) for n in names]
    arrays = [pair for pair in pairs if isinstance(pair[1], np.ndarray)]
    assert len(arrays) > 100
    return {
        name: np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-9))
        for name, a, b in arrays
        if not np.array_equal(a, b)
    }


def options(model):
    return {n: getattr(model.opt, n) for n in dir(model.opt) if n.islower() and n[0] != "_"}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """Changes the working directory, because MuJoCo writes a log of deprecations into it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("logs"))
        yield


def test_the_cheetah_equals_that_of_gymnasium_to_the_last_bit(quiet):
    theirs = mujoco.MjModel.from_xml_path(str(ASSETS / "half_cheetah.xml"))
    ours = load(cheetah.ROBOT)
    assert differences(ours, theirs) == {}
    jax.tree.map(np.testing.assert_array_equal, options(ours), options(theirs))


def test_the_walker_equals_that_of_gymnasium_except_for_its_time_step():
    theirs = mujoco.MjModel.from_xml_path(str(ASSETS / "walker2d.xml"))
    ours = load(walker.ROBOT)
    assert (
        max(differences(ours, theirs).values()) < 1e-12
    )  # Gymnasium's file has decimals with 17 digits
    assert (ours.opt.timestep, theirs.opt.timestep) == (0.004, 0.002)
    theirs.opt.timestep = 0.004
    jax.tree.map(np.testing.assert_array_equal, options(ours), options(theirs))


def test_the_walker_has_the_numbers_of_the_specification():
    model = load(walker.ROBOT)
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    friction = {model.geom(i).name: model.geom_friction[i, 0] for i in range(model.ngeom)}
    assert friction["floor"] == 0.7
    assert friction["foot_left"] == 1.9
    assert {f for n, f in friction.items() if n not in ("floor", "foot_left")} == {0.9}
    np.testing.assert_array_equal(model.dof_damping, [0] * 3 + [0.1] * 6)
    np.testing.assert_array_equal(model.dof_armature, [0] * 3 + [0.01] * 6)
    np.testing.assert_array_equal(model.actuator_gear[:, 0], 100)


def physics_of(data):
    """Returns the numbers of an MjData that our state contains."""
    return np.concatenate([[data.time], data.qpos, data.qvel, data.qacc_warmstart])


def actions(seed):
    """Returns large actions, so that the control limits matter, in float32 as in training."""
    return np.random.default_rng(seed).normal(0, 0.8, (STEPS, 6)).astype(np.float32)


@ft.partial(jax.jit, static_argnums=0)
def ours(env, task, physics, actions):
    """Returns (physics, step) after each of the actions, from this state and without resets."""

    def one(state, action):
        state, out = env.step(jr.key(0), task, state, action)
        return state, (state.physics, out)

    start = RobotState(jnp.asarray(physics), jnp.int32(0))
    return jax.lax.scan(one, start, actions)[1]


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_the_cheetah_moves_as_in_gymnasium(direction, quiet):
    twin = gymnasium.make("HalfCheetah-v5", ctrl_cost_weight=0.05).unwrapped
    twin.reset(seed=3)
    start, chosen = physics_of(twin.data), actions(0)
    expected, rewards, seen = [], [], []
    for action in chosen:
        obs, _, _, _, info = twin.step(action)
        expected.append(physics_of(twin.data))
        rewards.append(direction * info["reward_forward"] + info["reward_ctrl"])
        seen.append(obs)
    physics, steps = ours(Cheetah(), jnp.float32(direction), from_float64(start), chosen)
    np.testing.assert_array_equal(to_float64(np.asarray(physics)), expected)
    np.testing.assert_array_equal(steps.obs, np.float32(seen))
    np.testing.assert_allclose(steps.reward, rewards, rtol=1e-6, atol=1e-6)
    assert not steps.terminated.any()
    assert np.ptp(np.array(expected)[:, 1]) > 0.5  # it moved


def test_the_first_step_of_a_cheetah_does_not_depend_on_the_warm_start(quiet):
    """`reset` leaves out only the solver's warm start; the motion is equal up to 1e-6."""
    env, twin = Cheetah(), gymnasium.make("HalfCheetah-v5", ctrl_cost_weight=0.05).unwrapped
    state, _ = env.reset(jr.key(5), jnp.float32(1))
    start = to_float64(np.asarray(state.physics))
    twin.reset(seed=0)
    twin.set_state(start[1:10], start[10:19])
    chosen = actions(1)[:20]
    physics, _ = ours(env, jnp.float32(1), state.physics, chosen)
    expected = [twin.step(action) and physics_of(twin.data)[1:19] for action in chosen]
    np.testing.assert_allclose(to_float64(np.asarray(physics))[:, 1:19], expected, atol=1e-6)


def random_walker(task):
    """Returns a plain MjModel with the task's numbers and recomputed derived constants."""
    model = mujoco.MjModel.from_xml_path(str(Path(walker.__file__).parent / "walker.xml"))
    mass, inertia, friction, damping = np.split(np.float64(task), [8, 32, 56])
    model.body_mass *= mass
    model.body_inertia *= inertia.reshape(8, 3)
    model.geom_friction *= friction.reshape(8, 3)
    model.dof_damping *= damping
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


@pytest.mark.parametrize("seed", range(3))
def test_the_walker_moves_as_in_a_plain_loop(seed):
    env, chosen = Walker(), actions(seed)
    task = env.sample_task(jr.key(seed))
    state, _ = env.reset(jr.key(seed + 10), task)
    model = random_walker(task)
    data = mujoco.MjData(model)
    start = to_float64(np.asarray(state.physics))
    data.qpos, data.qvel = start[1:10], start[10:19]
    expected, rewards, fallen = [], [], []
    for action in chosen:
        before = data.qpos[0]
        data.ctrl[:] = action
        for _ in range(4):
            mujoco.mj_step(model, data)
        expected.append(physics_of(data))
        cost = 0.001 * np.square(np.float64(action)).sum()
        rewards.append((data.qpos[0] - before) / 0.016 + 1 - cost)
        fallen.append(not (0.8 < data.qpos[1] < 2.0 and -1 < data.qpos[2] < 1))
    physics, steps = ours(env, task, state.physics, chosen)
    np.testing.assert_array_equal(to_float64(np.asarray(physics)), expected)
    np.testing.assert_allclose(steps.reward, rewards, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(steps.terminated, fallen)
    assert 0 < np.argmax(fallen) < 200  # it falls, but not immediately
    qpos, qvel = np.split(np.array(expected)[:, 1:19], 2, axis=1)
    seen = np.concatenate([qpos[:, 1:], np.clip(qvel, -10, 10)], axis=1)
    np.testing.assert_array_equal(steps.obs, np.float32(seen))
    assert np.abs(qvel).max() > 10
