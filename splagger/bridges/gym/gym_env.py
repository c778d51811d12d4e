"""A Gymnasium environment as data: its source, its spaces, and how its tasks are sampled.

Gymnasium is imported only when an environment is created. Nothing here touches JAX's devices.
"""

import contextlib
import functools as ft
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from splagger.bridges.gym.creation import create, package_of
from splagger.bridges.gym.space_data import (
    SpaceData,
    action_space,
    flat_size,
    flat_vector,
    images_of,
    scale,
    space_data,
    texts_of,
    to_action,
)
from splagger.bridges.gym.task_sampling import Options, task_sampler
from splagger.bridges.importing import label_of
from splagger.envs.protocol import EnvSpec
from splagger.errors import FOREIGN_ERRORS, SettingError, cause_of
from splagger.ranges import Count, Workers, check_fields
from splagger.spaces import ActionSpace


@dataclass(frozen=True)
class GymEnv:
    """The description of a Gymnasium environment. Equal settings mean equal environments.

    - `source`: an id ("CartPole-v1", or "package:Id-v0" to import the package first; those in `PACKAGES` are
      imported for their ids), the import path of a function ("package.module:make"), or the function itself.
    - `task`: how tasks are sampled: auto, seed, sample_task, or a function rng → task, also as package.module:function.
    - `max_steps`: the time limit of an episode, in addition to the environment's own.
    - `workers`: the number of processes that step the environments. Results do not depend on it.
    - `kwargs`: the keyword arguments of `source`, as the text of a JSON object.
    """

    # What an environment is, and not how it behaves: names and folders of runs depend on it.
    IDENTITY: ClassVar[tuple[str, ...]] = ("source", "label", "render")

    source: str | Callable[..., Any]
    task: str | Callable[..., Any] = "auto"
    max_steps: Count | None = None
    workers: Workers = 0
    render: bool = False
    label: str = ""
    kwargs: str = ""

    def __post_init__(self):
        canonical = json.dumps(self.arguments, sort_keys=True)
        object.__setattr__(self, "kwargs", "" if canonical == "{}" else canonical)
        check_fields(self, f"{self.name}: ")

    @property
    def name(self) -> str:
        """The name of its runs; `Run.create` accepts it if `source` is a string."""
        return f"gym:{self.label or self.source}"

    @property
    def spec(self) -> EnvSpec:
        return layout(self).spec

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments as a dictionary."""
        try:
            found = dict(**json.loads(self.kwargs or "{}"))
            json.dumps(found, allow_nan=False)  # JSON has neither NaN nor infinity
            return found
        except (ValueError, TypeError, RecursionError):
            raise SettingError(
                f'{self.name}: kwargs must be like {{"size": 8}}, got {self.kwargs}'
            ) from None

    def settings(self) -> dict[str, Any]:
        """Returns the --set options with which `splagger train NAME` creates this environment."""
        plain = {"env.task": self.task, "env.max_steps": self.max_steps, "env.kwargs": self.kwargs}
        defaults = ("auto", None, "")
        return {k: v for k, v in plain.items() if isinstance(v, str | int) and v not in defaults}

    def describe(self) -> dict[str, Any]:
        """Returns everything that determines the environment's behavior, as plain data."""
        task = self.task if isinstance(self.task, str) else label_of("task", self.task)
        plain = {"kind": "GymEnv", "name": self.name, "task": task, "max_steps": self.max_steps}
        # Images and text were once flattened like other numbers: those runs have other digests.
        found = layout(self)
        newer = {"images": [list(image) for image in found.spec.images], "texts": list(found.texts)}
        given = {"kwargs": self.arguments} | newer
        return plain | {name: value for name, value in given.items() if value}

    def make(self) -> Any:
        """Creates the Gymnasium environment."""
        return create(self.name, self.source, self.arguments, self.render)

    def start_episode(self, env: Any, seed: int, episode: int, options: Options = None) -> Any:
        """Starts an episode of the task with this seed and returns the result of `reset`."""
        return task_sampler(self.name, self.task, env)(env, seed, episode, options)


def as_json(kwargs: str | Mapping[str, Any]) -> str:
    """Returns keyword arguments in the form of `GymEnv.kwargs`; a string is returned unchanged."""
    if isinstance(kwargs, str):
        return kwargs
    try:
        return json.dumps(dict(kwargs), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingError(
            f"kwargs must be plain (numbers, strings, lists), got {kwargs!r} ({error}): pass a function that "
            "creates the environment"
        ) from None


class Layout(NamedTuple):
    """An environment's spec, and the conversions of its observations and actions."""

    spec: EnvSpec
    flatten: Callable[[Any], np.ndarray]
    shape: tuple[int, ...] | None  # the observation's before flattening; None if it is not an array
    action: Callable[[np.ndarray], Any]  # our action → Gymnasium's
    observations: SpaceData | None  # both spaces as plain data, see `space_data`
    actions: SpaceData | None
    texts: tuple[str, ...]  # names of the text that observations lack


@ft.cache
def layout(source: GymEnv) -> Layout:
    """Reads the layout from an environment, which is created for this purpose and then closed."""
    env = source.make()
    try:
        return layout_of(source, env)
    finally:
        with contextlib.suppress(*FOREIGN_ERRORS):  # an error above matters more
            env.close()


def layout_of(source: GymEnv, env: Any) -> Layout:
    """Returns the layout of a Gymnasium environment with the task and the time limit of `source`."""
    from gymnasium import spaces

    obs, actions = (_space(source, env, f"{kind}_space") for kind in ("observation", "action"))
    task_sampler(source.name, source.task, env)  # raises if `task` is not valid
    data, texts = space_data(obs), tuple(texts_of(obs))
    images = images_of(data, _codes(source)) if data else ()
    size = _flat_size(obs) if data is None or not texts else flat_size(data)
    if not size:
        raise _not_numbers(source, obs)
    space, action = _actions(source, actions)
    box = isinstance(obs, spaces.Box)
    bounds = (float(obs.low.min()), float(obs.high.max())) if box else (-np.inf, np.inf)
    limit = _horizon(source, env)
    spec = EnvSpec(source.name, size, space, limit, *bounds, images=images)
    # Gymnasium's own function changes values that do not fit: -1 of a Discrete becomes its last value.
    known = data is not None
    flat = ft.partial(flat_vector, data) if known else ft.partial(spaces.flatten, obs)
    shape = obs.shape if box else None
    return Layout(spec, flat, shape, action, data, space_data(actions), texts)


def _space(source: GymEnv, env: Any, name: str) -> Any:
    from gymnasium import spaces

    try:
        space = getattr(env, name)
    except FOREIGN_ERRORS as error:
        raise SettingError(f"{source.name}: {name} raised {cause_of(error)}") from error
    if not isinstance(space, spaces.Space):
        raise SettingError(f"{source.name}: {name} must be a Gymnasium space, got {space!r:.80}")
    return space


def _horizon(source: GymEnv, env: Any) -> int:
    """Returns the smallest time limit of an episode."""
    limits = [n for n in (*_limits(env), source.max_steps) if n is not None]
    limits = limits or _own_limit(env)
    if not limits:
        raise SettingError(
            f"{source.name} does not say how long an episode can last: set max_steps= "
            "(on the command line --set env.max_steps=…), and longer episodes are truncated there"
        )
    return min(limits)


def _limits(env: Any) -> list[int | None]:
    """Returns the time limits in the environment's spec and wrappers."""
    from gymnasium import Wrapper
    from gymnasium.wrappers import TimeLimit

    found = [getattr(env.spec, "max_episode_steps", None)]
    while isinstance(env, Wrapper):
        if isinstance(env, TimeLimit):
            found.append(env._max_episode_steps)
        env = env.env
    return found


def _own_limit(env: Any) -> list[int]:
    """Returns the limit that an environment applies itself and calls `max_steps`, as MiniGrid does."""
    found = getattr(env.unwrapped, "max_steps", None)
    return [int(found)] if isinstance(found, int | np.integer) and found > 0 else []


def _flat_size(space: Any) -> int:
    """Returns the size of flattened observations; 0 if they cannot be flattened into numbers."""
    from gymnasium import spaces

    try:
        return int(spaces.flatdim(space)) if space.is_np_flattenable else 0
    except (ValueError, NotImplementedError):
        return 0


def _not_numbers(source: GymEnv, space: Any) -> SettingError:
    return SettingError(
        f"{source.name}: observations of {space} cannot be flattened into numbers; wrap the "
        "environment so that it returns Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of them"
    )


def _actions(source: GymEnv, space: Any) -> tuple[ActionSpace, Callable[[np.ndarray], Any]]:
    """Returns (our action space, function from our action to Gymnasium's)."""
    from gymnasium import spaces

    data = space_data(space)
    found = action_space(data)
    if data is None or found is None:
        raise SettingError(
            f"{source.name}: actions of {space} are not supported, only Discrete, MultiDiscrete, MultiBinary and Box "
            "of floats; wrap the environment"
        )
    if isinstance(space, spaces.Discrete):
        return found, lambda action: space.start + space.dtype.type(action)
    if isinstance(space, spaces.Box):
        return found, ft.partial(scale, space)
    return found, ft.partial(to_action, data)


def _codes(source: GymEnv) -> int:
    package = package_of(source.source) if isinstance(source.source, str) else None
    return package.codes if package else 0
