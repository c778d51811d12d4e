"""Our environments as Gymnasium environments: Gymnasium's checker, seeds, tasks, ends, frames and errors."""

import functools as ft
import subprocess
import sys

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from splagger import ENVS, Discrete
from splagger.bridges.meta_episode import MetaEpisode
from splagger.envs.mujoco import cheetah
from splagger.envs.mujoco.camera import Camera
from splagger.gymnasium_ids import IDS

META = pytest.mark.parametrize("meta", [True, False], ids=["meta", "single"])
ROBOTS = ("splagger/Cheetah-Dir-v0", "splagger/Walker-v0")
EVERY = pytest.mark.parametrize("identifier", IDS)


@ft.cache
def camera_works():
    """Returns whether MuJoCo can draw here."""
    try:
        Camera(cheetah.ROBOT)
    except Exception:  # each OpenGL implementation raises its own
        return False
    return True


def make(identifier, **settings):
    return gymnasium.make(identifier, **settings).unwrapped


def play(env, seed, steps):
    """Takes `steps` fixed random actions, with resets at the ends; returns all results of reset and step."""
    results = [env.reset(seed=seed)]
    env.action_space.seed(0)
    for action in [env.action_space.sample() for _ in range(steps)]:
        results.append(env.step(action))
        if results[-1][2] or results[-1][3]:
            results.append(env.reset())
    return results


def finish(env, action=0):
    """Repeats one action to the end; returns (rewards, episode ends, last step)."""
    rewards, ends, done = [], [], False
    while not done:
        step = env.step(action)
        rewards.append(step[1])
        ends.append(step[4]["episode_done"])
        done = step[2] or step[3]
    return rewards, ends, step


def assert_same(first, second):
    jax.tree.map(np.testing.assert_array_equal, first, second)


# The checker plays every environment by meta-episodes. By single episodes it plays one of each kind, and
# `make test-slow` the others.
KINDS = (
    "splagger/T-LS-v0",
    "splagger/Planning-v0",
    "splagger/MC-LS-v0",
    "splagger/Bandit-50-v0",
    *ROBOTS,
)
CHECKED = [pytest.param(name, True, id=f"meta-{name}") for name in IDS]
CHECKED += [
    pytest.param(name, False, id=f"single-{name}", marks=[pytest.mark.slow] * (name not in KINDS))
    for name in IDS
]


# Robots' observations are unbounded, and the checker warns of that.
@pytest.mark.filterwarnings("ignore:.*(A|For) Box (action|observation) space")
@pytest.mark.parametrize("identifier, meta", CHECKED)
def test_environments_pass_gymnasiums_checker(identifier, meta):
    drawable = identifier not in ROBOTS or camera_works()
    env = make(identifier, meta=meta, render_mode="rgb_array" if drawable else None)
    check_env(env, skip_render_check=not drawable)


@EVERY
@META
def test_spaces_match_the_registry_row(identifier, meta):
    env, row = make(identifier, meta=meta), ENVS[IDS[identifier]]
    size = row.meta.obs_size if meta else row.env.spec.obs_size
    assert env.observation_space.shape == (size,)
    assert env.observation_space.dtype == np.float32
    size = row.meta.space.size
    robot = gymnasium.spaces.Box(-1.0, 1.0, (size,))
    discrete = isinstance(row.meta.space, Discrete)
    assert env.action_space == (gymnasium.spaces.Discrete(size) if discrete else robot)
    obs, _ = env.reset(seed=0)
    assert obs in env.observation_space


@EVERY
def test_a_seed_determines_the_episode_and_seeds_differ(identifier):
    env = make(identifier)
    first, again = play(env, 7, 150), play(make(identifier), 7, 150)
    assert_same(first, again)
    assert_same(first, play(env, 7, 150))
    tasks = {str(make(identifier).reset(seed=seed)[1]["task"]) for seed in range(12)}
    assert len(tasks) > 1


def test_resets_without_a_seed_continue_the_random_stream():
    env = make("splagger/Planning-v0")
    tasks = [env.reset(seed=3)[1]["task"], *(env.reset()[1]["task"] for _ in range(4))]
    assert len({tuple(task) for task in tasks}) == 5


@pytest.mark.parametrize("after", [0, 30, 100])
def test_same_task_keeps_the_task_for_another_episode(after):
    env = make("splagger/Planning-v0", meta=False)
    _, info = env.reset(seed=0)
    for _ in range(after):
        *_, info = env.step(0)
    for _ in range(3):
        _, again = env.reset(options={"same_task": True})
        assert_same(again["task"], info["task"])
    assert any((env.reset()[1]["task"] != info["task"]).any() for _ in range(3))


def test_same_task_starts_a_whole_meta_episode():
    env = make("splagger/T-LS-v0")
    _, info = env.reset(seed=0)
    finish(env)
    obs, again = env.reset(options={"same_task": True})
    assert_same(again["task"], info["task"])
    assert obs[0] == 1 and obs[-1] == 0
    assert len(finish(env)[0]) == 400


@META
def test_a_t_maze_lasts_all_its_episodes_and_terminates(meta):
    env = make("splagger/T-LS-v0", meta=meta)
    _, info = env.reset(seed=1)
    rewards, ends, (obs, _, terminated, truncated, last) = finish(env, action=2)
    episodes = 4 if meta else 1
    prize = 4 if info["task"].door_up else -3
    expected = np.zeros(100 * episodes)
    expected[99::100] = prize
    np.testing.assert_array_equal(rewards, expected)
    np.testing.assert_array_equal(ends, expected != 0)
    assert terminated and not truncated
    assert obs[2] == 1 and obs[0] == 0  # the last observation, not the next first one
    assert_same(last["task"], info["task"])


def test_the_done_flag_is_set_at_the_start_of_later_episodes():
    env = make("splagger/T-LS-v0")
    env.reset(seed=0)
    flags = [env.step(1)[0][[0, -1]].tolist() for _ in range(400)]
    starts = [t for t, flag in enumerate(flags) if flag == [1, 1]]
    assert starts == [99, 199, 299]
    assert flags[-1] == [0, 1]


@pytest.mark.parametrize(
    ("identifier", "meta", "ends"),
    [("Planning", True, [99]), ("Planning", False, [99]), ("MC-LS", True, [199, 399])],
)
def test_the_time_limit_truncates(identifier, meta, ends):
    env = make(f"splagger/{identifier}-v0", meta=meta)
    env.reset(seed=0)
    _, ended, (_, _, terminated, truncated, _) = finish(env)
    assert np.flatnonzero(ended).tolist() == ends
    assert truncated and not terminated


@EVERY
def test_frames_are_rgb(identifier):
    if identifier in ROBOTS and not camera_works():
        pytest.skip("MuJoCo cannot draw here")
    env = make(identifier, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    env.action_space.seed(0)
    discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
    env.step(2 if discrete else env.action_space.sample())
    frame = env.render()
    assert frame.dtype == np.uint8
    assert frame.ndim == 3 and frame.shape[2] == 3 and min(frame.shape[:2]) > 100
    assert first.shape == frame.shape and (first != frame).any()
    env.render_mode = None
    assert env.render() is None


@EVERY
def test_vectorized_environments(identifier):
    envs = gymnasium.make_vec(identifier, num_envs=3, vectorization_mode="sync")
    obs, _ = envs.reset(seed=0)
    assert obs.shape == (3, ENVS[IDS[identifier]].meta.obs_size)
    space = envs.single_action_space
    discrete = isinstance(space, gymnasium.spaces.Discrete)
    actions = np.array([0, 1, 2]) if discrete else np.eye(3, *space.shape, dtype=np.float32)
    for _ in range(5):
        obs, reward, terminated, truncated, _ = envs.step(actions)
    assert obs in envs.observation_space
    assert reward.shape == terminated.shape == truncated.shape == (3,)
    envs.close()


@pytest.mark.parametrize("action", [4, -1, 0.5, None])
def test_illegal_actions_are_refused_by_value(action):
    env = make("splagger/T-LS-v0")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=rf"action {action!r} is not in Discrete\(4\)"):
        env.step(action)


def test_a_robot_accepts_any_finite_action():
    """Actions may be float64 or exceed the bounds, because an agent's actions are unbounded."""
    env = make("splagger/Cheetah-Dir-v0")
    env.reset(seed=0)
    env.step(np.full(6, 3.0))
    env.step([0.0] * 6)
    for action in (np.zeros(5), np.full(6, np.nan)):
        with pytest.raises(ValueError, match="is not in Box"):
            env.step(action)


def test_steps_before_the_first_reset_are_refused():
    with pytest.raises(RuntimeError, match=r"reset\(\) before step\(\)"):
        make("splagger/T-LS-v0").step(0)


def test_unknown_settings_are_refused_by_name():
    with pytest.raises(ValueError, match="render_mode must be None or 'rgb_array', got 'svg'"):
        MetaEpisode("t-ls", render_mode="svg")
    with pytest.raises(ValueError, match="no environment 't-lz'; did you mean t-ls"):
        MetaEpisode("t-lz")
    with pytest.raises(ValueError, match=r"unknown reset option.*'same_tusk'"):
        make("splagger/T-LS-v0").reset(options={"same_tusk": True})


def test_every_paper_environment_is_registered():
    assert sorted(IDS.values()) == sorted(name for name, row in ENVS.items() if not row.small)
    assert set(IDS) <= set(gymnasium.registry)


def test_gymnasium_imports_the_ids_by_module_name():
    code = (
        "import gymnasium; print(gymnasium.make('splagger.gymnasium_ids:splagger/T-LS-v0').spec.id)"
    )
    output = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=120)
    assert output.split() == ["splagger/T-LS-v0"]
