"""gymnax environments in our protocol: the parameters are the task.

A gymnax environment has `reset_env(key, params)` and `step_env(key, state, action, params)`.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from splagger.bridges.by_value import ByValue, strongly_typed
from splagger.bridges.importing import import_path_of
from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import SettingError, kind_of
from splagger.spaces import ActionSpace, Continuous, Discrete


class GymnaxEnv(eqx.Module):
    """A gymnax environment whose parameters are sampled for each task.

    It calls `step_env` and not `step`, which resets automatically and would lose an episode's last observation.
    """

    IDENTITY: ClassVar[tuple[str, ...]] = ("inner", "parameters", "task")

    inner: Any = eqx.field(static=True)
    parameters: ByValue = eqx.field(static=True)
    task: Callable[..., Any] | None = eqx.field(static=True, default=None)

    @property
    def params(self) -> Any:
        return self.parameters.value

    @property
    def spec(self) -> EnvSpec:
        obs = jax.eval_shape(lambda: self.reset(jax.random.key(0), self.params)[1])
        return EnvSpec(f"gymnax:{self.inner.name}", obs.size, self._space(), self._limit())

    def sample_task(self, key: Key[Array, ""]) -> Any:
        """Returns the parameters of one task; they are constant unless `task` samples them."""
        params = self.task(key, self.params) if self.task else self.params
        return strongly_typed(params)

    def reset(self, key: Key[Array, ""], task: Any):
        obs, state = self.inner.reset_env(key, task)
        return strongly_typed(state), self._flat(obs)

    def step(self, key: Key[Array, ""], task: Any, state: Any, action: Array):
        obs, state, reward, done, _ = self.inner.step_env(key, state, self._scale(action), task)
        limit, done = self._cut(state, task), jnp.asarray(done, bool)
        reward = jnp.asarray(reward, jnp.float32).reshape(())
        # Older gymnax releases include the time limit in `done`; newer ones report it in `is_truncated`.
        ended = done if hasattr(self.inner, "is_truncated") else done & ~limit
        step = Step(self._flat(obs), reward, ended, limit & ~ended)
        return strongly_typed(state), step

    def describe(self) -> dict[str, Any]:
        """Returns everything that determines the environment's behavior; `inner` unless its name suffices."""
        task, params = self.task, self.parameters.describe()
        named = getattr(task, "__qualname__", "<no name>")
        label = f"{task.__module__}:{named}" if task else None
        found = {"kind": "GymnaxEnv", "name": self.inner.name, "task": label, **params}
        if not self._is_known_by_name():
            found["environment"] = self.inner
        return found | (
            {} if task is None or isinstance(import_path_of(task), str) else {"task_code": task}
        )

    def _is_known_by_name(self) -> bool:
        """Whether `inner` is an environment of gymnax itself, made without arguments and in no wrapper."""
        kind = type(self.inner)
        if kind.__module__.partition(".")[0] != "gymnax":
            return False
        try:
            default = kind()
        except Exception:  # a wrapper, or an environment that needs arguments or files
            return False
        return ByValue(vars(self.inner)) == ByValue(vars(default))

    def _cut(self, state: Any, task: Any):
        if hasattr(self.inner, "is_truncated"):
            return jnp.asarray(self.inner.is_truncated(state, task), bool)
        return jnp.asarray(state.time >= task.max_steps_in_episode, bool)

    def _limit(self) -> int:
        limit = getattr(self.params, "max_steps_in_episode", None)
        if limit is None:
            raise SettingError(f"{self.inner.name}: params must have max_steps_in_episode")
        return int(limit)

    def _flat(self, obs: Any):
        space = self.inner.observation_space(self.params)
        if hasattr(space, "n"):
            return jax.nn.one_hot(obs, space.n)
        leaves = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(obs)]
        return jnp.concatenate(leaves)

    def _space(self) -> ActionSpace:
        space = self.inner.action_space(self.params)
        if hasattr(space, "n"):
            return Discrete(int(space.n))
        if not hasattr(space, "low"):
            raise SettingError(f"{self.inner.name}: actions of {space} are not supported")
        return Continuous(max(1, jnp.zeros(space.shape).size))

    def _scale(self, action: Array):
        """Maps [-1, 1] to [low, high] for continuous actions with finite bounds."""
        space = self.inner.action_space(self.params)
        if hasattr(space, "n"):
            return action
        low, high = (jnp.broadcast_to(x, space.shape) for x in (space.low, space.high))
        action = action.reshape(space.shape)
        scaled = low + (jnp.clip(action, -1, 1) + 1) / 2 * (high - low)
        return jnp.where(jnp.isfinite(low) & jnp.isfinite(high), scaled, action)


def _check_is_played(env: Any) -> None:
    """Refuses other objects, and environments that `step` or `reset` change, since neither is called.

    gymnax's wrappers change these, and pass on `step_env` and `reset_env` by `__getattr__`, so their classes have neither of them.
    """
    if isinstance(env, type) or not hasattr(env, "step_env"):
        name = repr(env) if isinstance(env, str) else "…"
        raise SettingError(
            f"from_gymnax takes an environment of gymnax, got {kind_of(env)}: write from_gymnax(*gymnax.make({name}))"
        )
    layers = [getattr(env, "__dict__", {}), *map(vars, type(env).__mro__)]

    def depth(name: str) -> int:
        return next((k for k, layer in enumerate(layers) if name in layer), len(layers))

    own, outer = (depth("step_env"), depth("reset_env")), (depth("step"), depth("reset"))
    if outer[0] < own[0] or outer[1] < own[1]:
        raise SettingError(
            f"{type(env).__name__} changes the step and reset of gymnax, which reset automatically and are not called "
            "here: override step_env and reset_env in a subclass of the environment instead of wrapping it"
        )


def from_gymnax(env: Any, params: Any = None, task: Callable[..., Any] | None = None) -> GymnaxEnv:
    """Returns a gymnax environment in our protocol; `task(key, params)` samples a task's parameters.

    To train with K episodes per task, wrap it in `MetaEnv(…, episodes=K)`.
    """
    _check_is_played(env)
    return GymnaxEnv(env, ByValue(env.default_params if params is None else params), task)
