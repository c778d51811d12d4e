"""Gymnasium environments in our loop: meta-episodes, pure functions, and errors that name the cause."""

import dataclasses
import functools as ft
import itertools
import logging
import os
import signal
import warnings
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from splagger.bridges import HostMetaEnv, from_gymnasium, unwrapped_errors
from splagger.bridges.gym import host
from splagger.bridges.gym.checked_env import CheckedEnv
from splagger.bridges.gym.gym_env import GymEnv
from splagger.bridges.gym.host import close_pools, pool_of
from splagger.bridges.gym.workers import WorkerPool
from splagger.envs import MetaEnv
from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import EnvError, SettingError
from splagger.spaces import Continuous, Discrete
from tests.bridges import gym_probes

STEPS = 24
ACTIONS = jr.bernoulli(jr.key(5), 0.6, (STEPS, 2, 3)).astype(jnp.int32)


class JaxWalk(eqx.Module):
    """`gym_probes.Walk` in our protocol, with one task."""

    secret: float = eqx.field(static=True)

    @property
    def spec(self):
        return EnvSpec("walk", 3, Discrete(2), 4)

    def sample_task(self, key):
        return jnp.float32(self.secret)

    def reset(self, key, task):
        return jnp.zeros(2), self._observe(task, jnp.zeros(2))

    def step(self, key, task, state, action):
        state = state + jnp.stack([1.0, action.astype(jnp.float32)])
        terminated = state[1] == 3
        cut = ~terminated & (state[0] == 4)
        return state, Step(self._observe(task, state), task + state[1], terminated, cut)

    def _observe(self, task, state):
        return jnp.stack([state[0], task, state[1]])


def walk(kind="Walk", episodes=2, **settings) -> HostMetaEnv:
    settings = {"max_steps": 4} | settings
    return from_gymnasium(f"tests.bridges.gym_probes:{kind}", episodes=episodes, **settings)


def start(env, seed=0):
    return jax.jit(jax.vmap(jax.vmap(env.reset)))(jr.split(jr.key(seed), (2, 3)))


@ft.cache
def stepping(env):
    return jax.jit(jax.vmap(jax.vmap(env.step)))


def play(env, state, actions=ACTIONS, first=0):
    """Returns (last state, [observation, episode and MetaStep after each action])."""
    outs = []
    for t, action in enumerate(actions, first):
        state, out = stepping(env)(jr.split(jr.key(t), (2, 3)), state, action)
        outs.append(jax.device_get((state.obs, state.episode, *out)))
    return state, outs


def assert_same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("episodes", [1, 3])
def test_meta_episodes_equal_those_of_a_jax_environment(episodes, monkeypatch):
    """Compares observations, rewards, flags and ends of two runs with three environments each."""
    secret = np.float32(0.25)
    monkeypatch.setattr(gym_probes.Walk, "sample", lambda *_: secret)
    env, ours = walk(episodes=episodes), MetaEnv(JaxWalk(float(secret)), episodes)
    assert (env.obs_size, env.space, env.horizon) == (ours.obs_size, ours.space, ours.horizon)
    _, theirs = play(env, start(env))
    _, expected = play(ours, start(ours))
    assert_same(theirs, expected)
    assert any(out[-1].any() for out in expected)
    close_pools()


def test_a_compiled_scan_equals_single_steps():
    env = walk()

    def one(state, x):
        t, action = x
        state, out = jax.vmap(jax.vmap(env.step))(jr.split(jr.key(t), (2, 3)), state, action)
        return state, (state.obs, state.episode, *out)

    first = start(env)
    scanned = jax.jit(lambda s: jax.lax.scan(one, s, (jnp.arange(STEPS), ACTIONS)))(first)
    last, steps = play(env, first)
    assert_same(scanned[0]._replace(actions=0), last._replace(actions=0))
    assert_same(jax.tree.map(lambda *x: np.stack(x), *steps), scanned[1])


@pytest.mark.parametrize("at", [0, 1, 5, 13])
def test_any_state_can_be_continued_at_any_time(at):
    """Continues after the environments are gone, as in a new process, and then again from the same state."""
    env = walk()
    state, _ = play(env, start(env), ACTIONS[:at])
    expected = play(env, state, ACTIONS[at:], at)
    for _ in range(2):
        close_pools()
        assert_same(play(env, state, ACTIONS[at:], at), expected)
        assert_same(play(env, state, ACTIONS[at:], at), expected)


def test_only_as_many_environments_as_needed_are_created_and_those_in_use_are_kept():
    env = walk()
    start(env)  # the first call creates one more, to read its layout
    close_pools()
    gym_probes.Walk.created = 0
    state = start(env)
    for seed in range(5):
        state, _ = play(env, state)
        play(env, start(env, seed))  # as in an evaluation
    pool = pool_of(env)
    assert gym_probes.Walk.created == len(pool.envs) == 12
    assert sum(map(len, pool.by_fingerprint.values())) == 12
    fingerprints = np.asarray(state.fingerprint).reshape(6, 2)
    assert {row.tobytes() for row in fingerprints} <= set(pool.by_fingerprint)


def tasks_of(env):
    """Returns the first observations of all episodes of 5 tasks."""
    key, firsts = jr.key(3), []
    state = jax.jit(env.reset)(key)
    step = jax.jit(env.step)
    firsts.append([state.obs])
    while len(firsts) < 6:
        key, step_key = jr.split(key)
        state, out = step(step_key, state, jnp.int32(1))
        if out.task_done:
            firsts.append([])
        if out.episode_done:
            firsts[-1].append(state.obs)
    return np.array(firsts[:5])


SAMPLERS = {
    "the seed": ("Walk", {}),
    "sample_task": ("ByMethod", {}),
    "options": ("ByOptions", {"task": "tests.bridges.gym_probes:draw_task"}),
    "a function": ("ByOptions", {"task": gym_probes.draw_task}),
}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_task_stays_the_same_in_all_its_episodes_and_then_changes(sampler):
    kind, settings = SAMPLERS[sampler]
    observed = tasks_of(walk(kind, episodes=3, **settings))
    task, noise, flag = observed[..., 1], observed[..., 2], observed[..., 3]
    assert (task == task[:, :1]).all() and len(np.unique(task[:, 0])) == 5
    np.testing.assert_array_equal(flag, [[0, 1, 1]] * 5)
    if sampler != "the seed":  # episodes of a task are not copies of each other
        assert len(np.unique(noise)) == 15


def test_a_task_sampler_can_be_chosen():
    assert tasks_of(walk("ByMethod", task="seed"))[..., 1].max() == 0


def test_a_nondeterministic_environment_starts_new_tasks_and_warns_once():
    env = walk("Restless")
    state, _ = play(env, start(env), ACTIONS[:1])
    close_pools()
    with pytest.warns(
        UserWarning, match=r"Restless is not deterministic.*new tasks replace"
    ) as caught:
        after, outs = play(env, state, ACTIONS[1:3], 1)
    assert len(caught) == 1
    obs, episode, next_obs, reward, terminated, truncated, episode_done, task_done = outs[0]
    np.testing.assert_array_equal(next_obs, state.obs)
    assert (reward == 0).all() and not terminated.any()
    assert truncated.all() and episode_done.all() and task_done.all()
    assert (episode == 0).all() and (obs[..., 0] == 0).all()
    np.testing.assert_array_equal(after.count, 1)
    np.testing.assert_array_equal(after.obs[..., 1], obs[..., 1])


def test_a_nondeterministic_environment_continues_within_one_process():
    env = walk("Restless")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, outs = play(env, start(env))
    secrets = np.stack([out[0][..., 1] for out in outs])
    resets = np.stack([out[6] for out in outs])  # the secret changes only at resets
    assert (np.diff(secrets, axis=0)[~resets[1:]] == 0).all()


def test_endless_episodes_are_truncated():
    env = walk("Endless", episodes=2, max_steps=5)
    assert env.horizon == 10
    _, outs = play(env, start(env))
    truncated, task_done = (np.stack([out[i] for out in outs]) for i in (5, 7))
    np.testing.assert_array_equal(truncated[:, 0, 0], [t % 5 == 4 for t in range(STEPS)])
    np.testing.assert_array_equal(task_done[:, 0, 0], [t % 10 == 9 for t in range(STEPS)])


def test_dictionaries_are_flattened_and_actions_scaled_to_their_bounds():
    env = walk("Everything", episodes=1)
    assert env.obs_size == 4 + 3 + (2 + 3) + 2 and env.space == Continuous(2)
    state = jax.jit(env.reset)(jr.key(0))
    parts = {"bits": [0, 1], "box": [0, 1, 2, 3], "many": [0, 1, 0, 0, 1], "one": [0, 1, 0]}
    np.testing.assert_array_equal(state.obs, np.concatenate([parts[k] for k in sorted(parts)]))
    np.testing.assert_array_equal(env.flatten(gym_probes.Everything().observe()), state.obs)
    np.testing.assert_array_equal(env.action([1, 7]), [[10, 7]])
    # The first number is scaled to [0, 10]; the second has no upper bound and is only clipped below.
    for action, first, second in [((0, 0), 5, 0), ((-1, 7), 0, 7), ((9, -9), 10, -4)]:
        _, out = jax.jit(env.step)(jr.key(1), state, jnp.array(action, jnp.float32))
        assert out.reward == first + 100 * second


def test_discrete_actions_may_start_anywhere():
    env = walk("Shifted", episodes=1)
    state = jax.jit(env.reset)(jr.key(0))
    for action in range(3):
        new, _ = jax.jit(env.step)(jr.key(1), state, jnp.int32(action))
        assert new.obs[2] == action - 1


BAD = {
    "Breaks": r"step\(\) raised ZeroDivisionError: no reason \(.*gym_probes.py:\d+\) at step 3",
    "NanObservation": "observation is nan at index 1 .* at step 3",
    "WrongShape": r"observation has shape \(2,\), its space says \(3,\) at step 3",
    "NanReward": "reward is nan at step 3",
    "TextReward": "reward is 'much', not a number at step 3",
    "OldStep": r"step\(\) must return \(observation, reward, terminated, truncated, info\) at step 3",
    "OldReset": r"reset\(\) must return \(observation, info\) at step 0",
    "BadReset": r"reset\(\) raised KeyError: 'task' .* at step 0",
    "LostKey": r"observation does not fit its space \(KeyError: 'one'\) at step 0",
}


@unwrapped_errors()
def four_steps(env):
    state = jax.jit(env.reset)(jr.key(0))
    for t in range(4):
        state, _ = jax.jit(env.step)(jr.key(t), state, env.space.zero())
    jax.block_until_ready(state)


@pytest.mark.parametrize("kind", BAD)
def test_an_invalid_environment_is_reported_by_name_field_and_step(kind, caplog):
    env = walk(kind, episodes=1)
    name = rf"gym:tests.bridges.gym_probes:{kind}: {BAD[kind]} of episode 1, task seed \d+$"
    with pytest.raises(EnvError, match=name):
        four_steps(env)
    assert not caplog.records
    assert not pool_of(env).envs, "after an error no environment is kept"


def test_the_log_filter_is_installed_only_inside_the_context():
    logger = logging.getLogger("jax._src.callback")
    before = list(logger.filters)
    with unwrapped_errors():
        assert len(logger.filters) == len(before) + 1
    assert logger.filters == before


def test_a_time_limit_wrapper_is_respected():
    limited = lambda: TimeLimit(RecordEpisodeStatistics(gym_probes.Endless()), 7)  # noqa: E731
    assert from_gymnasium(limited, name="limited").horizon == 7
    assert from_gymnasium(limited, name="limited further", max_steps=3).horizon == 3


REFUSED = [
    ({"kind": "Unflattenable"}, r"Unflattenable: observations of Sequence.* cannot be flattened"),
    ({"kind": "ManyActions"}, r"ManyActions: actions of Dict.* are not supported"),
    ({"max_steps": None}, r"Walk does not say how long an episode can last: set max_steps="),
    ({"max_steps": 0}, "max_steps must be at least 1, got 0"),
    (
        {"task": "sometimes"},
        "Walk: task must be auto, seed, sample_task or a function .*'sometimes'",
    ),
    ({"task": "tests:draw"}, "Walk: the task function cannot be found .*'draw'"),
    ({"workers": -1}, "workers must be at least 0, got -1"),
    ({"episodes": 0}, "episodes must be at least 1, got 0"),
    ({"kind": "Nothing"}, "gym_probes:Nothing cannot be found .*no attribute 'Nothing'"),
]


@pytest.mark.parametrize("settings, message", REFUSED, ids=str)
def test_environments_that_cannot_be_trained_on_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        _ = walk(**settings).horizon


UNKNOWN = {
    "CartPool-v1": "gym:CartPool-v1: the environment cannot be created",
    "no_such_package:Env-v0": "gym:no_such_package:Env-v0: the environment cannot be created",
    "no_such_module:make": r"^gym:no_such_module:make cannot be found \(No module named 'no_such_module'\)$",
}


@pytest.mark.parametrize("source", UNKNOWN)
def test_unknown_names_are_reported(source):
    with pytest.raises(SettingError, match=UNKNOWN[source]):
        _ = from_gymnasium(source).obs_size


def test_functions_are_named_by_import_path_or_need_a_name():
    assert from_gymnasium(gym_probes.Walk, max_steps=4) == walk(episodes=1)
    with pytest.raises(
        ValueError, match=r"make_env: .*has no name that distinguishes its runs from others"
    ):
        from_gymnasium(lambda: gym_probes.Walk())
    named = from_gymnasium(lambda: gym_probes.Walk(), max_steps=4, name="custom")
    assert named.env.name == "gym:custom" and named.obs_size == 3


def test_an_environment_is_created_with_its_kwargs():
    env = from_gymnasium(gym_probes.Sized, max_steps=4, kwargs={"size": 5})
    assert env.obs_size == 5
    assert from_gymnasium(gym_probes.Sized, max_steps=4, kwargs={}) == walk("Sized", episodes=1)
    assert from_gymnasium("CartPole-v1", kwargs={"max_episode_steps": 7}).horizon == 7
    rendered = GymEnv("tests.bridges.gym_probes:Sized", render=True, kwargs='{"render_mode": null}')
    assert rendered.make().render_mode == "rgb_array"
    passed_on = lambda **kwargs: gym_probes.Sized(**kwargs)  # noqa: E731
    assert GymEnv(passed_on, render=True).make().render_mode == "rgb_array"
    both = [{"a": 1, "b": 2}, '{"b": 2, "a": 1}']
    assert len({from_gymnasium("CartPole-v1", kwargs=kwargs) for kwargs in both}) == 1


BAD_KWARGS = [
    ('{"size": 5', r"gym:.*Sized: kwargs must be like \{\"size\": 8\}, got \{\"size\": 5"),
    ("[5]", r"kwargs must be like .*, got \[5\]"),
    ('{"size": NaN}', r"kwargs must be like .*, got \{\"size\": NaN"),
    ('{"size": 1e400}', r"kwargs must be like .*, got \{\"size\": 1e400"),
    pytest.param('{"size": ' + "[" * 10**5, "kwargs must be like", id="deep"),
    pytest.param('{"size": ' + "9" * 5000 + "}", "kwargs must be like", id="many digits"),
    (
        '{"height": 5}',
        "Sized: the environment cannot be created .*unexpected keyword argument 'height'",
    ),
]


@pytest.mark.parametrize("text, message", BAD_KWARGS)
def test_invalid_kwargs_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        GymEnv("tests.bridges.gym_probes:Sized", max_steps=4, kwargs=text).spec  # noqa: B018
    with pytest.raises(ValueError, match=r"kwargs must be plain .*pass a function"):
        from_gymnasium(gym_probes.Sized, kwargs={"size": np.arange(3)})
    with pytest.raises(ValueError, match=r"kwargs must be plain .*pass a function"):
        from_gymnasium(gym_probes.Sized, kwargs={"size": np.nan})


def test_an_agent_that_diverged_does_not_break_the_environments_of_others():
    """Its actions are NaN, which many environments refuse: they get zeros, and training stops that agent."""
    env = CheckedEnv(GymEnv("tests.bridges.gym_probes:Everything", max_steps=4), 1)
    env.reset(0)
    env.step(np.array([np.nan, np.inf], np.float32))
    np.testing.assert_array_equal(env.env.taken, np.float32([[5, 0]]))  # the middle, and no bound


def test_workers_do_not_change_the_results():
    """Signals do not either: Ctrl-C reaches all processes of a job, and the parent needs workers until it has saved."""
    env = walk()
    with_workers = HostMetaEnv(env=dataclasses.replace(env.env, workers=2), episodes=2)
    first = start(with_workers)
    assert_same(first, start(env))
    workers = [pid for one in pool_of(with_workers).processes for pid in one._processes]
    for pid, number in itertools.product(workers, (signal.SIGINT, signal.SIGTERM)):
        os.kill(pid, number)
    assert_same(play(with_workers, first), play(env, first))
    pool_of(with_workers).close()
    broken = walk("NanReward", workers=1, episodes=1)
    with pytest.raises(EnvError, match="NanReward: reward is nan at step 3"), unwrapped_errors():
        jax.block_until_ready(play(broken, start(broken)))
    pool_of(broken).close()


def test_a_worker_that_ends_is_reported():
    env = walk("Quits", workers=1, episodes=1)
    with (
        pytest.raises(EnvError, match="Quits: a worker process ended unexpectedly"),
        unwrapped_errors(),
    ):
        jax.block_until_ready(play(env, start(env)))


def test_workers_need_an_importable_environment():
    local = from_gymnasium(lambda: gym_probes.Walk(), max_steps=4, workers=1, name="custom")
    with pytest.raises(
        ValueError, match="workers need an environment that other processes can import"
    ):
        pool_of(local)


def test_images_show_the_state():
    env = walk().to_render()
    state = jax.jit(env.reset)(jr.key(0))
    for time in (0, 1, 2):
        assert (env.render(state) == 10 * time).all()
        state, _ = jax.jit(env.step)(jr.key(time), state, jnp.int32(0))
    stuck = walk("Stuck").to_render()
    with pytest.raises(
        EnvError, match=r"Stuck: render\(\) returned no RGB image; make_env must take"
    ):
        stuck.render(jax.jit(stuck.reset)(jr.key(0)))


def test_environments_without_pictures_say_what_to_do(monkeypatch):
    """Of a registered id, the class must take `render_mode` and have `render`."""
    monkeypatch.delattr(gym_probes.Walk, "render")
    env = CheckedEnv(GymEnv("tests.bridges.gym_probes:Walk", max_steps=4, render=True), 1)
    env.reset(0)
    with pytest.raises(EnvError, match=r"Walk: it has no render\(\); splagger evaluate needs no"):
        env.render()
    gymnasium.register("Stuck-v0", entry_point="tests.bridges.gym_probes:Stuck")
    try:
        with pytest.raises(SettingError, match=r"with render_mode='rgb_array', which .* evaluate"):
            GymEnv("Stuck-v0", render=True).make()
    finally:
        gymnasium.registry.pop("Stuck-v0")


def test_an_episode_that_terminates_at_its_time_limit_is_not_truncated():
    env = walk("BothAtOnce")
    _, outs = play(env, start(env))
    terminated, truncated = (np.stack([out[i] for out in outs]) for i in (4, 5))
    assert terminated.any() and not truncated.any()


def test_the_oldest_pools_are_closed_and_made_again_if_needed(monkeypatch):
    monkeypatch.setattr(host, "MOST_POOLS", 2)
    close_pools()
    envs = [walk(episodes=episodes) for episodes in (1, 2, 3)]
    expected, oldest = play(envs[0], start(envs[0])), pool_of(envs[0])
    assert oldest.envs
    for env in envs[1:]:
        start(env)
    assert list(host._pools) == envs[1:] and not oldest.envs
    assert_same(play(envs[0], start(envs[0])), expected)
    newest = pool_of(envs[0])
    close_pools()
    assert not host._pools and not newest.envs


@pytest.mark.parametrize("answered, message", [(False, "could not start"), (True, "killed")])
def test_a_worker_that_never_answered_could_not_start(answered, message):
    pool, future = WorkerPool.__new__(WorkerPool), Future()
    pool.name, pool.answered = "gym:mine", answered
    future.set_exception(BrokenProcessPool())
    with pytest.raises(EnvError, match=f"gym:mine: a worker process .*{message}"):
        pool._result(future)
