"""A Gymnasium environment as an agent plays it: several episodes of a task in a row, and observations in its form."""

from typing import Any

import gymnasium
import numpy as np


class TaskEpisodes(gymnasium.Wrapper):
    """One Gymnasium episode is a whole task: K episodes of `env`, as in training.

    `reset(seed=…, options=…)` begins a task. Its other episodes begin with the same seed and options, or, if the
    environment has a method `sample_task`, with the task that this method has sampled. At the end of an inner episode,
    the agent observes the start of the next one, with the done flag 1; `info["episode_done"]` is then True.
    """

    def __init__(self, env: gymnasium.Env, played: Any):
        """Wraps `env`; `played` is `agent.env`, which has `episodes`, `horizon`, `obs_size`, `flatten` and `action`."""
        super().__init__(env)
        self.played, self.length = played, played.horizon // played.episodes
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (played.obs_size,))
        self._samples_task = callable(getattr(env.unwrapped, "sample_task", None))
        self._again: dict[str, Any] = {}
        self._episode = self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        self._episode = self._step = 0
        if self._samples_task:
            self.env.reset(seed=seed)
            self.env.get_wrapper_attr("sample_task")()
        # Without a seed, another one would be drawn in each episode, and so another task.
        drawn = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        self._again = {"seed": None if self._samples_task else drawn, "options": options}
        obs, info = self.env.reset(**self._again)
        return self.played.flatten(obs), info | {"episode_done": False}

    def step(self, action: Any):
        obs, reward, terminated, truncated, info = self.env.step(self.played.action(action))
        self._step += 1
        truncated = bool(truncated) or (self._step == self.length and not terminated)
        done = bool(terminated) or truncated
        is_last = self._episode + 1 == self.played.episodes
        if done and not is_last:
            self._episode, self._step = self._episode + 1, 0
            obs, _ = self.env.reset(**self._again)
            terminated = truncated = False
        return (
            self.played.flatten(obs, done),
            float(reward),
            bool(terminated),
            truncated,
            info | {"episode_done": done},
        )
