"""A Gymnasium environment as an agent plays it: several episodes of a task in a row, and observations in its form."""

import dataclasses
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from splagger.bridges.gym.checked_env import CheckedEnv
from splagger.bridges.gym.gym_env import GymEnv, Layout, layout
from splagger.bridges.gym.host import HostMetaEnv
from splagger.errors import SettingError, kind_of
from splagger.ranges import TaskSeed, check
from splagger.spaces import ActionSpace, Discrete, MultiDiscrete


class TaskEpisodes(gymnasium.Wrapper):
    """One Gymnasium episode is a whole task: K episodes of `env`, as in training.

    `reset(seed=…)` begins the task that training would begin with this seed, and `reset()` the next of the tasks that the
    last seed determines. With `options`, each of its episodes is reset with these, and no function samples a task. At
    the end of an inner episode, the agent observes the start of the next one, with the done flag 1;
    `info["episode_done"]` is then True.

    An agent that was loaded without its environment does not know how its tasks were sampled. They are sampled by
    `sample_task` if the environment has this method, and else by the seed.
    """

    def __init__(self, env: Any, played: Any):
        """Wraps `env`; `played` is `agent.env`, a `HostMetaEnv` or a `SavedInterface`."""
        if not isinstance(env, gymnasium.Env):
            raise SettingError(
                f"wrap() takes a Gymnasium environment, as gymnasium.make(…) returns one, got {kind_of(env)}"
            )
        super().__init__(env)
        in_training = isinstance(played, HostMetaEnv)
        source = played.env if in_training else GymEnv(type(env.unwrapped).__name__)
        source = dataclasses.replace(source, max_steps=played.horizon // played.episodes)
        self._task = CheckedEnv(source, played.episodes, env)
        _check_spaces(env, self._task.layout, layout(played.env) if in_training else played)
        self.observation_space = spaces.Box(-np.inf, np.inf, (played.obs_size,))
        self.action_space = _space(played.space, env.action_space)
        self._seeds = np.random.default_rng()

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None):
        if seed is None:
            seed = int(self._seeds.integers(2**31))
        else:
            check("seed", seed, TaskSeed)
            # Not `default_rng(seed)`, from which environments and tasks draw.
            self._seeds = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
        obs = self._task.reset(int(seed), options)
        return obs, self._task.info | {"episode_done": False}

    def step(self, action: Any):
        found = np.asarray(action)
        is_number = found.dtype.kind in "iuf" and found.shape == self.action_space.shape
        if not (is_number and np.isfinite(found).all()):
            raise SettingError(f"action must be one of {self.action_space}, got {action!r:.80}")
        out = self._task.step(found)
        ends = out.terminated and out.task_done, out.truncated and out.task_done
        return out.obs, out.reward, *ends, self._task.info | {"episode_done": out.episode_done}


def _check_spaces(env: gymnasium.Env, found: Layout, known: Any) -> None:
    """Raises a SettingError unless the environment has the spaces that are known from training."""
    for kind in ("observation", "action"):
        if getattr(found, f"{kind}s") != getattr(known, f"{kind}s"):
            raise SettingError(
                f"{type(env.unwrapped).__name__}: its {kind}s are {getattr(env, f'{kind}_space')}, not those of the "
                "environment that the agent plays; for other spaces of the same sizes, write "
                "agent.with_env(env=splagger.from_gymnasium(…)).wrap(env)"
            )


def _space(ours: ActionSpace, theirs: spaces.Space[Any]) -> spaces.Space[Any]:
    """Returns the space of an agent's actions; a number of a Box that lacks a bound is passed on unchanged."""
    if isinstance(ours, Discrete):
        return spaces.Discrete(ours.size)
    if isinstance(ours, MultiDiscrete):
        return spaces.MultiDiscrete(np.array(ours.sizes))
    assert isinstance(theirs, spaces.Box)
    low, high = theirs.low.ravel(), theirs.high.ravel()
    scaled = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(scaled, -1, low), np.where(scaled, 1, high)
    return spaces.Box(low.astype(np.float32), high.astype(np.float32))
