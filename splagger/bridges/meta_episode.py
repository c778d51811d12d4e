"""Our environments as Gymnasium environments; `splagger.gymnasium_ids` registers their ids."""

import functools as ft

import gymnasium
import jax
import jax.random as jr
import numpy as np

from splagger.envs import MetaEnv
from splagger.errors import SettingError
from splagger.registry import ENVS
from splagger.spaces import Discrete
from splagger.tables import lookup


class MetaEpisode(gymnasium.Env):
    """One of our environments as a Gymnasium environment.

    - `meta=True`: a Gymnasium episode is a meta-episode, K episodes of one task in a row, with the done flag
      in the observation. `info["episode_done"]` is True where one of the K episodes ends.
    - `meta=False`: a Gymnasium episode is one episode. Every reset samples a task, unless
      `reset(options={"same_task": True})` asks for another episode of the last task.

    `info["task"]` holds the task as NumPy arrays, for analysis; the agent does not observe it.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}

    def __init__(self, name: str, meta: bool = True, render_mode: str | None = None):
        row = lookup(ENVS, name, "environment")
        if render_mode not in (None, "rgb_array"):
            raise SettingError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.meta, self.render_mode = meta, render_mode
        self._env = row.meta if meta else MetaEnv(env=row.env, episodes=1)
        spec = row.env.spec
        shape = (self._env.obs_size,)
        self.observation_space = gymnasium.spaces.Box(spec.obs_low, spec.obs_high, shape)
        self.action_space = _space(spec.space)
        self._reset, self._step, self._repeat = _compiled(self._env)
        self._key, self._state = None, None

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        if seed is not None or self._key is None:
            self._key = jr.key(int(self.np_random.integers(2**31)))
        options = options or {}
        unknown = set(options) - {"same_task"}
        if unknown:
            raise SettingError(
                f"unknown reset option {sorted(unknown)}; the only option is 'same_task'"
            )
        if options.get("same_task") and self._state is not None:
            self._state = self._repeat(self._next_key(), self._state.task)
        else:
            self._state = self._reset(self._next_key())
        return np.array(self._state.obs), self._info(False)

    def step(self, action):
        if self._state is None:
            raise RuntimeError("call reset() before step()")
        action = self._checked(action)
        state, out, last = self._step(self._next_key(), self._state, action)
        done = bool(out.task_done)
        # After the last step our state already belongs to a new task, so keep the state that was reached.
        self._state = self._state._replace(inner=last, obs=out.next_obs) if done else state
        terminated = done and bool(out.terminated)
        info = self._info(bool(out.episode_done))
        return (
            np.array(self._state.obs),
            float(out.reward),
            terminated,
            done and not terminated,
            info,
        )

    def render(self):
        if self.render_mode is None or self._state is None:
            return None
        return self._env.render(self._state)

    def _checked(self, action) -> np.ndarray:
        """Returns a valid action as an array. Continuous actions may exceed the bounds: MuJoCo clips them."""
        space = self.action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            legal = space.contains(action)
        else:
            action = np.asarray(action, space.dtype)
            legal = action.shape == space.shape and np.isfinite(action).all()
        if not legal:
            raise SettingError(f"action {action!r} is not in {space}")
        return np.asarray(action)

    def _next_key(self):
        self._key, key = jr.split(self._key)
        return key

    def _info(self, episode_done):
        assert self._state is not None, "call reset() first"
        task = jax.tree.map(np.array, self._state.task)
        return {"episode_done": episode_done, "task": task}


def _space(space):
    if isinstance(space, Discrete):
        return gymnasium.spaces.Discrete(space.size)
    return gymnasium.spaces.Box(-1.0, 1.0, (space.size,))


@ft.cache
def _compiled(env):
    """Returns the environment's functions, compiled once per process and run on the CPU."""

    def repeat(key, task):
        inner, obs = env.env.reset(key, task)
        fresh = env.reset(key)
        return fresh._replace(task=task, inner=inner, obs=fresh.obs.at[: obs.shape[0]].set(obs))

    def step(key, state, action):
        """Returns the meta-environment's step, and the inner state before any reset."""
        inner_key, _, _ = jr.split(key, 3)
        last, _ = env.env.step(inner_key, state.task, state.inner, action)
        return *env.step(key, state, action), last

    cpu = jax.devices("cpu")[0]

    def on_cpu(function):
        compiled = jax.jit(function)

        def call(*args):
            with jax.default_device(cpu):
                return compiled(*args)

        return call

    return on_cpu(env.reset), on_cpu(step), on_cpu(repeat)
