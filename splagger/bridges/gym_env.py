"""Anybody's Gymnasium environment as data: where it comes from, what it looks like, how its tasks are drawn.

Gymnasium is imported only where an environment is made. Nothing here touches JAX's devices.
"""

import functools as ft
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from splagger.bridges.importing import add_working_directory, import_object, label_of
from splagger.bridges.task_sampling import task_sampler
from splagger.envs.protocol import EnvSpec
from splagger.errors import SettingError
from splagger.spaces import Continuous, Discrete


@dataclass(frozen=True)
class GymEnv:
    """A Gymnasium environment, not made yet. Equal settings are equal environments.

    `source`: an id ("CartPole-v1", or "package:Id-v0" to import the package first), a function by its
    place ("package.module:make"), or the function itself. `task`: how tasks are drawn, see `task_sampling.TASK_SAMPLERS`, or a
    function rng → task, again by its place or itself. `workers`: processes to step in; results do not
    depend on it. `kwargs`: what it is made with, a JSON object as text, so that it can be named on a command line.
    """

    source: str | Callable[..., Any]
    task: str | Callable[..., Any] = "auto"
    max_steps: int | None = None
    workers: int = 0
    render: bool = False
    label: str = ""
    kwargs: str = ""

    def __post_init__(self):
        same = json.dumps(self.arguments, sort_keys=True)  # for equal settings
        object.__setattr__(self, "kwargs", "" if same == "{}" else same)
        if self.max_steps is not None and self.max_steps < 1:
            raise SettingError(f"{self.name}: max_steps must be at least 1, got {self.max_steps}")
        if self.workers < 0:
            raise SettingError(f"{self.name}: workers must be at least 0, got {self.workers}")

    @property
    def name(self) -> str:
        """What its runs are called; `Run.create` finds it by that name if `source` is a text."""
        return f"gym:{self.label or self.source}"

    @property
    def spec(self) -> EnvSpec:
        return layout(self).spec

    @property
    def arguments(self) -> dict[str, Any]:
        """What `kwargs` says."""
        try:
            return dict(**json.loads(self.kwargs or "{}"))
        except (json.JSONDecodeError, TypeError):
            raise SettingError(
                f'{self.name}: kwargs must be like {{"size": 8}}, got {self.kwargs}'
            ) from None

    def settings(self) -> dict[str, Any]:
        """What `splagger train NAME` needs as --set to mean this environment."""
        plain = {"env.task": self.task, "env.max_steps": self.max_steps, "env.kwargs": self.kwargs}
        defaults = ("auto", None, "")
        return {k: v for k, v in plain.items() if isinstance(v, str | int) and v not in defaults}

    def describe(self) -> dict[str, Any]:
        """All that determines what happens in it, as plain data."""
        task = self.task if isinstance(self.task, str) else label_of("task", self.task)
        plain = {"kind": "GymEnv", "name": self.name, "task": task, "max_steps": self.max_steps}
        return plain | ({"kwargs": self.arguments} if self.kwargs else {})

    def make(self) -> Any:
        """A new Gymnasium environment."""
        import gymnasium

        try:
            if callable(self.source) or _is_function(self.source):
                return self._call(self._function())
            add_working_directory()
            given = {"disable_env_checker": True} | self.arguments
            mode = {"render_mode": "rgb_array"} if self.render else {}
            return gymnasium.make(self.source, **(given | mode))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
            raise SettingError(f"{self.name}: the environment cannot be made ({reason})") from error

    def _function(self) -> Callable[..., Any]:
        return (
            import_object(self.source, self.name) if isinstance(self.source, str) else self.source
        )

    def _call(self, function: Callable[..., Any]) -> Any:
        takes_mode = "render_mode" in inspect.signature(function).parameters
        mode = {"render_mode": "rgb_array"} if self.render and takes_mode else {}
        return function(**(self.arguments | mode))

    def begin(self, env: Any, seed: int, episode: int) -> Any:
        """What `reset` gives at the start of an episode of the task that `seed` stands for."""
        return task_sampler(self.name, self.task, env)(env, seed, episode)


def as_json(kwargs: str | Mapping[str, Any]) -> str:
    """As `GymEnv.kwargs` takes them; a text is one already."""
    if isinstance(kwargs, str):
        return kwargs
    try:
        return json.dumps(dict(kwargs), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingError(
            f"kwargs must be plain (numbers, texts, lists), got {kwargs!r} ({error}): give a function that "
            "makes the environment"
        ) from None


class Layout(NamedTuple):
    """The shape of an environment, and how observations and actions cross the border."""

    spec: EnvSpec
    flatten: Callable[[Any], np.ndarray]
    shape: tuple[int, ...] | None  # of an observation before it is flattened, where it has one
    action: Callable[[np.ndarray], Any]  # ours → theirs


@ft.cache
def layout(source: GymEnv) -> Layout:
    """Read from one environment, made for that and closed again."""
    from gymnasium import spaces

    env = source.make()
    try:
        obs = env.observation_space
        if not isinstance(obs, spaces.Space) or not isinstance(env.action_space, spaces.Space):
            raise SettingError(
                f"{source.name}: observation_space and action_space must be Gymnasium's"
            )
        task_sampler(source.name, source.task, env)  # a task that cannot be drawn is told here
        size = _flat_size(source, obs)
        space, action = _actions(source, env.action_space)
        limits = [n for n in (*_limits(env), source.max_steps) if n is not None]
        if not limits:
            raise SettingError(
                f"{source.name} does not say how long an episode can last: give max_steps= "
                "(on the command line --set env.max_steps=…), and longer ones are cut there"
            )
        box = isinstance(obs, spaces.Box)
        bounds = (float(obs.low.min()), float(obs.high.max())) if box else ()
        spec = EnvSpec(source.name, size, space, min(limits), *bounds)
        return Layout(spec, ft.partial(spaces.flatten, obs), obs.shape if box else None, action)
    finally:
        env.close()


def _limits(env: Any) -> list[int | None]:
    """How long an episode can last, as far as the environment's spec or a wrapper says so."""
    from gymnasium import Wrapper
    from gymnasium.wrappers import TimeLimit

    found = [getattr(env.spec, "max_episode_steps", None)]
    while isinstance(env, Wrapper):
        if isinstance(env, TimeLimit):
            found.append(env._max_episode_steps)
        env = env.env
    return found


def _flat_size(source: GymEnv, space: Any) -> int:
    from gymnasium import spaces

    try:
        size = spaces.flatdim(space) if space.is_np_flattenable else 0
    except (ValueError, NotImplementedError):
        size = 0
    if not size:
        raise SettingError(
            f"{source.name}: observations of {space} cannot be flattened into numbers; wrap the "
            "environment so that it gives Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of them"
        )
    return int(size)


def _actions(source: GymEnv, space: Any):
    """(our action space, our action → theirs)."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return Discrete(int(space.n)), lambda action: space.start + space.dtype.type(action)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return Continuous(int(np.prod(space.shape))), ft.partial(_scale, space)
    raise SettingError(
        f"{source.name}: actions of {space} are not supported, Discrete and Box of floats are; wrap the "
        "environment (a small MultiDiscrete can be numbered as one Discrete)"
    )


def _scale(box: Any, action: np.ndarray) -> np.ndarray:
    """-1 … 1 → low … high, and what is beyond is cut; where there are no bounds, as it is."""
    action = action.reshape(box.shape)
    bounded = np.isfinite(box.low) & np.isfinite(box.high)
    low, high = np.where(bounded, box.low, 0.0), np.where(bounded, box.high, 0.0)
    scaled = low + (np.clip(action, -1, 1) + 1) / 2 * (high - low)
    return np.where(bounded, scaled, np.clip(action, box.low, box.high)).astype(box.dtype)


def _is_function(source: str) -> bool:
    """Whether a text is package.module:function; ids of environments are no Python names."""
    return source.partition(":")[2].replace(".", "").isidentifier()
