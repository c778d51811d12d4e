"""A wrapped Gymnasium environment plays tasks as training does: same episodes, done flags and observations."""

import gymnasium
import jax
import jax.random as jr
import numpy as np
import pytest
from gymnasium import spaces

import splagger
from splagger import from_gymnasium
from splagger.agents import Player
from splagger.agents.interface import interface_of
from splagger.bridges.gym.task_episodes import TaskEpisodes
from splagger.bridges.gym.task_sampling import by_method
from splagger.errors import EnvError, SettingError
from tests.bridges import gym_probes

PROBES = "tests.bridges.gym_probes"


TASKS = {
    "seed": ("Walk", {}),
    "its method": ("ByMethod", {}),
    "seed despite a method": ("ByMethod", {"task": "seed"}),
    "the method of a wrapper": ("Tasked", {}),
    "a function": ("ByOptions", {"task": f"{PROBES}:draw_task"}),
    "both ends at once": ("BothAtOnce", {}),
}


@pytest.mark.parametrize("episodes, max_steps", [(1, 9), (3, 9), (3, 2)])
@pytest.mark.parametrize("kind, given", TASKS.values(), ids=TASKS)
def test_tasks_are_those_of_training(kind, given, episodes, max_steps):
    """Also where `max_steps` cuts episodes."""
    played = from_gymnasium(f"{PROBES}:{kind}", episodes=episodes, max_steps=max_steps, **given)
    wrapped = TaskEpisodes(getattr(gym_probes, kind)(), played)
    state, step = played.reset(jr.key(3)), jax.jit(played.step)
    obs, info = wrapped.reset(seed=int(state.seed))
    np.testing.assert_array_equal(obs, state.obs)
    assert wrapped.observation_space.contains(obs) and not info["episode_done"]
    done, ends = False, []
    for time, key in enumerate(jr.split(jr.key(0), 99)):
        action = np.int32(time % 2)
        state, out = step(key, state, action)
        obs, reward, terminated, truncated, info = wrapped.step(action)
        done = terminated or truncated
        assert (done, info["episode_done"]) == (bool(out.task_done), bool(out.episode_done))
        assert reward == pytest.approx(float(out.reward))
        if done:
            assert (terminated, truncated) == (bool(out.terminated), bool(out.truncated))
            np.testing.assert_array_equal(obs, out.next_obs)
            break
        np.testing.assert_array_equal(obs, state.obs)
        ends += [time] * info["episode_done"]
    assert done and len(ends) == episodes - 1


def test_tasks_of_a_method_and_of_options_last_for_all_episodes():
    def secrets(wrapped):
        obs, _ = wrapped.reset()
        seen, done = [obs[1]], False
        while not done:
            obs, _, terminated, truncated, info = wrapped.step(0)
            done = terminated or truncated
            seen += [obs[1]] * info["episode_done"]
        return seen

    by_seed = TaskEpisodes(gym_probes.Walk(), from_gymnasium(f"{PROBES}:Walk", "seed", 3, 9))
    assert len(set(secrets(by_seed))) == 1 and secrets(by_seed) != secrets(by_seed)
    played = from_gymnasium(f"{PROBES}:ByMethod", episodes=3, max_steps=9)
    by_method = TaskEpisodes(gym_probes.ByMethod(), played)
    tasks = []
    for _ in range(2):
        secrets(by_method)
        tasks.append(by_method.unwrapped.task)
    assert tasks[0] != tasks[1] and all(task is not None for task in tasks)


def test_a_task_that_is_returned_and_not_set_is_refused():
    """All tasks would be the same one."""

    class Returns(gym_probes.ByMethod):
        def sample_task(self):
            return self.np_random.uniform()

    env = Returns()
    with pytest.raises(
        EnvError, match=r"sample_task\(\) of Returns must .* pass a function rng → task"
    ):
        by_method(env, 3, 0)
    by_method(gym_probes.ByMethod(), 3, 0)


def test_tasks_without_a_seed_follow_from_the_last_one():
    def tasks():
        wrapped = TaskEpisodes(gym_probes.Walk(), from_gymnasium(f"{PROBES}:Walk", max_steps=9))
        return [wrapped.reset(seed=seed)[0][1] for seed in (0, None, None)]

    assert len(set(tasks())) == 3 and tasks() == tasks()


def test_options_of_a_caller_are_those_of_every_episode():
    played = from_gymnasium(f"{PROBES}:ByOptions", f"{PROBES}:draw_task", 3, 9)
    wrapped = TaskEpisodes(gym_probes.ByOptions(), played)
    _, secret, noise, _ = wrapped.reset(seed=2)[0]
    obs, _ = wrapped.reset(seed=2, options={"task": 7.5})
    assert secret != 7.5 and obs[1] == 7.5 and obs[2] == noise
    starts = []
    for _ in range(8):
        obs, *_, info = wrapped.step(0)
        starts += [tuple(obs[1:])] * info["episode_done"]
    assert {task for task, *_ in starts} == {7.5} and len({noise, *(n for _, n, _ in starts)}) == 3


def test_an_agent_from_a_file_plays_tasks_of_a_seed_or_of_a_method():
    for kind, index in (("Walk", 1), ("ByMethod", 1)):
        played = interface_of(from_gymnasium(f"{PROBES}:{kind}", episodes=2, max_steps=2))
        wrapped = TaskEpisodes(getattr(gym_probes, kind)(), played)
        first = wrapped.reset(seed=3)[0]
        wrapped.step(0)
        second, *_, info = wrapped.step(0)
        assert first[-1] == 0 and second[-1] == 1 and info["episode_done"]
        assert first[index] == second[index] != wrapped.reset(seed=4)[0][index]


def test_the_actions_of_a_wrapped_environment_are_those_of_the_agent():
    wrapped = TaskEpisodes(gym_probes.Shifted(), from_gymnasium(f"{PROBES}:Shifted", max_steps=9))
    assert wrapped.action_space == spaces.Discrete(3)
    played = from_gymnasium(f"{PROBES}:Everything", max_steps=9)
    wrapped = TaskEpisodes(gym_probes.Everything(), played)
    assert wrapped.action_space == spaces.Box(np.float32([-1, -4]), np.float32([1, np.inf]))
    wrapped.reset(seed=0)
    wrapped.step(np.array([0.5, 3.0]))
    assert wrapped.unwrapped.taken.tolist() == [[7.5, 3.0]]
    for wrong in (0, [0.5], [np.nan, 0], "up"):
        with pytest.raises(SettingError, match=r"action must be one of Box\(.*, got"):
            wrapped.step(wrong)


def test_other_environments_than_the_agent_plays_are_refused():
    sized = from_gymnasium(f"{PROBES}:Sized", max_steps=9)
    for played in (sized, interface_of(sized)):
        with pytest.raises(SettingError, match=r"observations are .*agent\.with_env\(env=spl"):
            TaskEpisodes(gym_probes.Sized(2), played)
    played = from_gymnasium(f"{PROBES}:Walk", max_steps=9)
    with pytest.raises(
        SettingError, match=r"Shifted: its actions are Discrete\(3, start=-1\), not"
    ):
        TaskEpisodes(gym_probes.Shifted(), played)
    for wrong in ("CartPole-v1", gym_probes.Walk):
        with pytest.raises(
            SettingError, match=r"as gymnasium\.make\(…\) returns one, got (str|the c)"
        ):
            TaskEpisodes(wrong, played)
    for seed in (-1, 0.5):
        with pytest.raises(SettingError, match="seed must be"):
            TaskEpisodes(gym_probes.Walk(), played).reset(seed=seed)


def test_other_agents_do_not_play_gymnasium_environments():
    agent = splagger.load("t-ls/splagger")
    parts = agent.agent, agent.normalizers, interface_of(agent.environment("")), agent.point
    for player in (agent, Player(*parts)):
        with pytest.raises(SettingError, match="was not trained on a Gymnasium environment"):
            player.wrap(gymnasium.make("CartPole-v1"))
