"""XLand-MiniGrid's environments in our protocol: the ruleset is the task.

Its environments are pure functions `reset(params, key)` and `step(params, timestep, action)`. The timestep is our state.
"""

from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from splagger.bridges.by_value import ByValue, strongly_typed
from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import SettingError, kind_of
from splagger.images import Image
from splagger.spaces import Discrete

ACTIONS = ("forward", "right", "left", "pick up", "put down", "toggle")
# The first number of a cell is one of 13 kinds of tiles, the second one of 12 colors.
CELL, CODES = 2, 13
EPISODES = 4  # per task, of environments with rulesets


class XLandEnv(eqx.Module):
    """An environment of XLand-MiniGrid. With `rulesets`, every task has one of them: a goal, rules and objects.

    Observations are those of the environment and of its wrappers. Cells are codes, of which the network sees
    planes (see `Image`).
    """

    IDENTITY: ClassVar[tuple[str, ...]] = ("inner", "parameters", "rulesets", "name")

    inner: Any = eqx.field(static=True)
    parameters: ByValue = eqx.field(static=True)
    rulesets: ByValue | None = eqx.field(static=True, default=None)
    name: str = eqx.field(static=True, default="xland")

    @property
    def spec(self) -> EnvSpec:
        horizon, observation = self._limit(), self._example()
        size = sum(leaf.size for leaf in jax.tree.leaves(observation))
        actions = int(self.inner.num_actions(self.parameters.value))
        return EnvSpec(
            self.name,
            size,
            Discrete(actions),
            horizon,
            action_names=ACTIONS if actions == len(ACTIONS) else (),
            images=tuple(map(_image, _cells_first(observation)[0])),
        )

    def sample_task(self, key: Key[Array, ""]) -> Any:
        """Samples a ruleset uniformly. Without rulesets, all tasks are the same."""
        return () if self.rulesets is None else self.rulesets.value.sample_ruleset(key)

    def reset(self, key: Key[Array, ""], task: Any):
        timestep = strongly_typed(self.inner.reset(self._params(task), key))
        return timestep, _flat(timestep.observation)

    def step(self, key: Key[Array, ""], task: Any, state: Any, action: Array):
        timestep = strongly_typed(self.inner.step(self._params(task), state, action))
        terminated = timestep.last() & (timestep.discount == 0)
        reward = jnp.asarray(timestep.reward, jnp.float32)
        step = Step(_flat(timestep.observation), reward, terminated, timestep.last() & ~terminated)
        return timestep, step

    def render(self, task: Any, state: Any, episode: int, episodes: int) -> Any:
        """Returns the environment's own picture of a state."""
        return self.inner.render(self._params(task).replace(render_mode="rgb_array"), state)

    def describe(self) -> dict[str, Any]:
        """Returns everything that determines the environment's behavior; `inner` with all wrappers."""
        found = self.rulesets
        return {
            "kind": "XLandEnv",
            "name": self.name,
            "environment": self.inner,
            **self.parameters.describe(),
            "rulesets": found and {"count": found.value.num_rulesets(), "digest": found.digest},
        }

    def _params(self, task: Any) -> Any:
        params = self.parameters.value
        return params if self.rulesets is None else params.replace(ruleset=task)

    def _example(self) -> Any:
        """Returns the shapes of an observation."""

        def first(key):
            return self.inner.reset(self._params(self.sample_task(key)), key).observation

        return jax.eval_shape(first, jax.random.key(0))

    def _limit(self) -> int:
        limit = self.parameters.value.max_steps
        if limit is None:
            raise SettingError(f"{self.name}: params must have max_steps")
        return int(limit)


def from_xland(env: Any, params: Any, rulesets: Any = None, name: str = "xland") -> XLandEnv:
    """Returns an environment of XLand-MiniGrid, possibly in wrappers, in our protocol.

    - `env`, `params`: what `xminigrid.make` returns. Wrappers that reset automatically must be left out.
    - `rulesets`: an `xminigrid.benchmarks.Benchmark` from which each task samples one; by default all tasks have that of
      `params`.

    To train with K episodes per task, wrap it in `MetaEnv(…, episodes=K)`.
    """
    if rulesets is not None and not hasattr(rulesets, "sample_ruleset"):
        load = f"xminigrid.load_benchmark({repr(rulesets) if isinstance(rulesets, str) else '…'})"
        raise SettingError(f"rulesets must be like {load}, got {kind_of(rulesets)}")
    goal = getattr(getattr(params, "ruleset", None), "goal", None)
    if rulesets is None and goal is not None and not np.any(goal):
        raise SettingError(
            f"{name} has no goal without rulesets: pass those of xminigrid.load_benchmark(…), or params with a ruleset"
        )
    return XLandEnv(env, ByValue(params), None if rulesets is None else ByValue(rulesets), name)


def by_name(name: str) -> XLandEnv:
    """Returns the environment ID or ID/RULESETS. RULESETS is a name of `xminigrid.registered_benchmarks()` or a file."""
    from xminigrid import benchmarks, registration  # pyright: ignore[reportMissingImports]

    identifier, _, wanted = name.partition("/")
    env, params = registration.make(identifier)
    known = benchmarks.registered_benchmarks()
    if not wanted and hasattr(params, "ruleset"):
        raise SettingError(
            f"xland:{name} has no goal without rulesets: write xland:{name}/RULESETS, where RULESETS is "
            f"{', '.join(known)} or a file of rulesets"
        )
    if wanted and not hasattr(params, "ruleset"):
        raise SettingError(
            f"xland:{name}: {identifier} has a goal of its own and takes no rulesets"
        )
    if not wanted:
        rulesets = None
    elif wanted in known:
        rulesets = benchmarks.load_benchmark(wanted)
    elif Path(wanted).is_file():
        rulesets = benchmarks.load_benchmark_from_path(wanted)
    else:
        raise SettingError(
            f"xland:{name}: {wanted!r} is neither a file nor one of {', '.join(known)}"
        )
    return from_xland(env, params, rulesets, f"xland:{name}")


def _cells_first(observation: Any) -> tuple[list[Any], list[Any]]:
    """Returns the leaves of an observation that are images, and the others."""
    leaves = jax.tree.leaves(observation)
    return [x for x in leaves if len(x.shape) == 3], [x for x in leaves if len(x.shape) != 3]


def _flat(observation: Any) -> Float[Array, " obs"]:
    images, numbers = _cells_first(observation)
    return jnp.concatenate([jnp.ravel(x).astype(jnp.float32) for x in (*images, *numbers)])


def _image(leaf: Any) -> Image:
    height, width, channels = leaf.shape
    return Image(height, width, channels, codes=CODES if channels == CELL else 0)
