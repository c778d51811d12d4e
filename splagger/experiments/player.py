"""A trained agent for anybody's loop: numpy in, numpy out, and it remembers by itself."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.agent import Agent, Normalizers
from splagger.envs import AbstractMetaEnv
from splagger.experiments.grid import Point, Run
from splagger.sequence import Transition


class Player:
    """One agent living through one task after another.

    Call `act` with what is seen, `observe` with what came of it, and `reset` where a new task begins.
    Observations are those of the meta-episode: with several episodes a task, the done flag comes last.
    """

    def __init__(
        self,
        agent: Agent,
        normalizers: Normalizers,
        env: AbstractMetaEnv,
        point: Point,
        seed: int = 0,
        run: Run | None = None,
        path: Path | None = None,
    ):
        self.agent, self.normalizers, self.env, self.point = agent, normalizers, env, point
        self.run, self.path = run, path  # that it was trained in, and where that lies
        self._key = jr.key(seed)
        self._act, self._observe = jax.jit(Agent.act, static_argnums=5), jax.jit(Agent.observe)
        self.reset()

    def reset(self) -> None:
        """Forgets everything: a new task begins."""
        self.memory, self._obs = self.agent.start(), None

    def act(self, obs: Any, explore: bool = False) -> Any:
        """The most likely action (or a sampled one, to `explore`): an int, or an array of floats."""
        self._obs = obs = self._checked("obs", obs)
        self._key, key = jr.split(self._key)
        chosen = self._act(self.agent, self.memory, obs, key, self.normalizers, explore)
        action = np.asarray(chosen.action)
        return int(action) if action.ndim == 0 else action

    def observe(self, action: Any, reward: Any, next_obs: Any, task_done: bool = False) -> None:
        """Remembers what the last `act` led to; `task_done` ends the task, and with it the memory.

        The end of an episode is not the end of a task: with several episodes a task, it is the done flag in
        `next_obs`, and the agent goes on remembering.
        """
        if self._obs is None:
            raise RuntimeError("observe() tells what came of an action: call act() before each")
        example = self.env.space.zero()
        step = Transition(
            jnp.asarray(self._obs),
            jnp.asarray(action, example.dtype).reshape(example.shape),
            jnp.float32(reward),
            jnp.asarray(self._checked("next_obs", next_obs)),
        )
        self.memory = self._observe(self.agent, self.memory, step, bool(task_done))
        self._obs = None

    def _checked(self, name: str, obs: Any) -> np.ndarray:
        try:
            obs = np.asarray(obs, np.float32)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} must be {self.env.obs_size} numbers, got {type(obs).__name__}; of a Gymnasium "
                "environment, agent.env.flatten(…) gives them"
            ) from None
        if not np.isfinite(obs).all():
            raise ValueError(f"{name} must be finite, got {obs}")
        if obs.shape != (self.env.obs_size,):
            flag = " (the last number is the done flag)" if self.env.episodes > 1 else ""
            raise ValueError(
                f"{name} must have shape ({self.env.obs_size},){flag}, got {obs.shape}"
            )
        return obs
