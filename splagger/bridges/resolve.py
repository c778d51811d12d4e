"""Turns a name or an environment into a row like those of the registry."""

import functools as ft
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from splagger.bridges import xland_env
from splagger.bridges.gym.host import HostMetaEnv, from_gymnasium
from splagger.bridges.gymnax_env import from_gymnax
from splagger.bridges.importing import import_object
from splagger.envs import AbstractMetaEnv, Env, MetaEnv
from splagger.envs.protocol import EnvSpec, follows
from splagger.errors import FOREIGN_ERRORS, SettingError, UserError, cause_of
from splagger.ppo.settings import PPOConfig
from splagger.registry import ENVS, EnvRow
from splagger.spaces import ActionSpace
from splagger.tables import lookup

# Defaults for environments that are not in the registry; `--set` changes any of them.
DEFAULT_PPO = PPOConfig(
    steps=256,
    clip=0.2,
    discount=0.99,
    entropy=0.01,
    mask_truncated=True,
    eval_interval=10,
    buffer=10_000,
)
DEFAULT_FRAMES = 1_000_000
PROTOCOL = ("spec", "sample_task", "reset", "step")


def resolve(env: Any) -> EnvRow:
    """Returns the row of a name ("t-ls", "gym:CartPole-v1", …) or an environment; a row is returned unchanged."""
    if isinstance(env, EnvRow):
        return env
    if isinstance(env, str):
        source, colon, name = env.partition(":")
        return _source(source, name)(name) if colon else _ours(env)
    return row_of(env)


def _source(source: str, name: str) -> Callable[[str], EnvRow]:
    """Returns the function that makes rows of a source's environments."""
    try:
        return lookup(SOURCES, source, "source of environments")
    except SettingError as error:
        raise SettingError(
            f"{error}; an environment of your module is written gym:{source}:{name} or jax:{source}:{name}"
        ) from None


def row_of(env: Any, name: str = "") -> EnvRow:
    """Returns a row with default settings for an environment that is not in the registry."""
    if gym := _gymnasium_name(env):
        raise SettingError(
            f"{gym} is a Gymnasium environment: pass splagger.from_gymnasium({_maker(env)}), or a function that makes one"
        )
    if isinstance(env, type):
        raise SettingError(
            f"{env.__name__} is a class: pass an environment, {env.__name__}(…), instead"
        )
    if isinstance(env, types.FunctionType | ft.partial):
        return row_of(from_gymnasium(env))
    if isinstance(env, HostMetaEnv):
        return EnvRow(env.env.name, "", env, DEFAULT_FRAMES, DEFAULT_PPO)
    if isinstance(env, AbstractMetaEnv):
        found = _spec(env.env, name).name
        return EnvRow(name or found, "", env, DEFAULT_FRAMES, DEFAULT_PPO)
    if _is_env(env, name):
        return row_of(MetaEnv(env=env, episodes=1), name)
    prefix = f"{name}: " if name else ""
    if lacks := _lacks(env):
        raise SettingError(f"{prefix}{type(env).__name__} is not an environment: it has no {lacks}")
    raise SettingError(
        f"{prefix}{env!r:.200} is not an environment: pass a name, a row of splagger.ENVS, an environment of our protocol "
        "(splagger.envs.Env), or what splagger.from_gymnasium, from_gymnax and from_xland return"
    )


def _gymnasium_name(env: Any) -> str:
    """The name of the class if this is an environment of Gymnasium or a class of them; "" if not."""
    gymnasium = sys.modules.get("gymnasium")
    kind = env if isinstance(env, type) else type(env)
    return kind.__name__ if gymnasium and issubclass(kind, gymnasium.Env) else ""


def _maker(env: Any) -> str:
    """What makes a Gymnasium environment like this one: its id, or its class."""
    kind = env if isinstance(env, type) else type(env)
    name = getattr(getattr(env, "spec", None), "id", None)
    return repr(name) if isinstance(name, str) else kind.__name__


def _is_env(env: Any, name: str) -> bool:
    """Returns whether an object has our protocol, which reads its `spec`."""
    try:
        # An AttributeError inside of a property would read as if the object had no spec.
        if inspect.getattr_static(env, "spec", None) is not None:
            _ = env.spec
        return follows(env, Env)
    except FOREIGN_ERRORS as error:
        raise SettingError(
            f"{name or type(env).__name__}: its spec raised {cause_of(error)}"
        ) from error


def _lacks(env: Any) -> str:
    """Returns what an object that has a part of our protocol lacks of it; empty for other objects."""
    missing = [name for name in PROTOCOL if inspect.getattr_static(env, name, None) is None]
    return _in_words(missing) if len(missing) < len(PROTOCOL) else ""


def _in_words(names: Sequence[str]) -> str:
    *first, last = names or ("",)
    return f"{', '.join(first)} and {last}" if first else last


def _spec(env: Any, name: str) -> EnvSpec:
    """Returns the spec of a JAX environment; raises a SettingError unless its sizes are valid."""
    name = name or type(env).__name__
    if not _is_env(env, name):
        lacks = _lacks(env)
        needs = f"has no {lacks}" if lacks else f"needs {_in_words(PROTOCOL)}"
        raise SettingError(f"{name} is not an environment of our protocol: it {needs}")
    spec = env.spec
    if not isinstance(spec, EnvSpec):
        raise SettingError(f"{name}: spec must be a splagger.envs.EnvSpec, got {spec!r:.80}")
    for field in ("obs_size", "horizon"):
        value = getattr(spec, field)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise SettingError(
                f"{name}: spec.{field} must be a positive integer, got {value!r:.80}"
            )
    if not isinstance(spec.space, ActionSpace):
        raise SettingError(
            f"{name}: spec.space must be splagger.Discrete, MultiDiscrete or Continuous, got {spec.space!r:.80}"
        )
    return spec


def _ours(name: str) -> EnvRow:
    try:
        return lookup(ENVS, name, "environment")
    except SettingError as error:
        gym = f"gym:{name}" if _is_gymnasium_id(name) else "gym:ID"
        raise SettingError(f"{error}; environments of Gymnasium are written {gym}") from None


def _is_gymnasium_id(name: str) -> bool:
    import gymnasium

    return name in gymnasium.registry


def _of_gymnasium(name: str) -> EnvRow:
    return row_of(from_gymnasium(name))


@ft.cache
def _of_gymnax(name: str) -> EnvRow:
    """Returns the row of a gymnax environment by its gymnax name; gymnax must be installed."""

    def make():
        import gymnax  # pyright: ignore[reportMissingImports]

        return from_gymnax(*gymnax.make(name))

    return row_of(_made(f"gymnax:{name}", make), f"gymnax:{name}")


@ft.cache
def _of_xland(name: str) -> EnvRow:
    """Returns the row of ID or ID/RULESETS of XLand-MiniGrid, which must be installed."""
    env = _made(f"xland:{name}", ft.partial(xland_env.by_name, name))
    episodes = 1 if env.rulesets is None else xland_env.EPISODES
    return row_of(MetaEnv(env=env, episodes=episodes), env.name)


def _made(name: str, make: Callable[[], Any]) -> Any:
    """Returns an environment of another library; the error if that fails names the environment and a missing package."""
    try:
        return make()
    except UserError:
        raise
    except ModuleNotFoundError as error:
        raise SettingError(
            f"{name} cannot be created ({error}); install it with: pip install {error.name}"
        ) from error
    except FOREIGN_ERRORS as error:
        raise SettingError(f"{name} cannot be created ({cause_of(error)})") from error


@ft.cache
def _of_module(path: str) -> EnvRow:
    """Returns the row of an environment, or of a function or class that creates one, by its import path."""
    name = f"jax:{path}"
    env = import_object(path, name)
    if not isinstance(env, EnvRow | AbstractMetaEnv) and (
        isinstance(env, type) or not _is_env(env, name)
    ):
        env = _created(env, name)
    # By this name, a run folder finds its environment again.
    return replace(env, name=name) if isinstance(env, EnvRow) else row_of(env, name)


def _created(function: Any, name: str) -> Any:
    """Calls a function or class that creates an environment."""
    if not callable(function):
        raise SettingError(
            f"{name} is neither an environment nor a function that creates one: {function!r:.80}"
        )
    try:
        return function()
    except UserError:
        raise
    except FOREIGN_ERRORS as error:
        raise SettingError(
            f"{name} cannot be created ({cause_of(error)}); it is called without arguments"
        ) from error


# prefix of a name → function that returns its row
SOURCES: dict[str, Callable[[str], EnvRow]] = {
    "gym": _of_gymnasium,
    "gymnax": _of_gymnax,
    "xland": _of_xland,
    "jax": _of_module,
}
