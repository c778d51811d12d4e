"""A wrapped Gymnasium environment plays tasks as training does: same episodes, done flags and observations."""

import gymnasium
import jax
import jax.random as jr
import numpy as np
import pytest

import splagger
from splagger import from_gymnasium
from splagger.bridges.gym.task_episodes import TaskEpisodes
from splagger.errors import SettingError
from tests.bridges import gym_probes

PROBES = "tests.bridges.gym_probes"


@pytest.mark.parametrize("episodes, max_steps", [(1, 9), (3, 9), (3, 2)])
def test_tasks_are_those_of_training(episodes, max_steps):
    """Also where `max_steps` cuts episodes."""
    played = from_gymnasium(f"{PROBES}:Walk", episodes=episodes, max_steps=max_steps)
    wrapped = TaskEpisodes(gym_probes.Walk(), played)
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
    def secrets(wrapped, options=None):
        obs, _ = wrapped.reset(options=options)
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


def test_other_agents_do_not_play_gymnasium_environments():
    with pytest.raises(SettingError, match="was not trained on a Gymnasium environment"):
        splagger.load("t-ls/splagger").wrap(gymnasium.make("CartPole-v1"))
