"""Turns a name or an environment into a row like those of the registry."""

import functools as ft
from collections.abc import Callable
from typing import Any

from splagger.bridges.gymnax_env import from_gymnax
from splagger.bridges.host import HostMetaEnv, from_gymnasium
from splagger.bridges.importing import import_object
from splagger.envs import AbstractMetaEnv, Env, MetaEnv
from splagger.errors import SettingError
from splagger.ppo.settings import PPOConfig
from splagger.registry import ENVS, EnvRow
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


def resolve(env: Any) -> EnvRow:
    """Returns the row of a name ("t-ls", "gym:CartPole-v1", …) or an environment; a row is returned unchanged."""
    if isinstance(env, EnvRow):
        return env
    if isinstance(env, str):
        source, colon, name = env.partition(":")
        return lookup(SOURCES, source, "source of environments")(name) if colon else _ours(env)
    return row_of(env)


def row_of(env: Any, name: str = "") -> EnvRow:
    """Returns a row with default settings for an environment that is not in the registry."""
    if isinstance(env, type):
        raise SettingError(
            f"{env.__name__} is a class: pass an environment, {env.__name__}(…), instead"
        )
    if isinstance(env, HostMetaEnv):
        return EnvRow(env.env.name, "", env, DEFAULT_FRAMES, DEFAULT_PPO)
    if isinstance(env, AbstractMetaEnv):
        return EnvRow(name or env.env.spec.name, "", env, DEFAULT_FRAMES, DEFAULT_PPO)
    if isinstance(env, Env):
        return row_of(MetaEnv(env=env, episodes=1), name)
    raise SettingError(
        f"{env!r} is not an environment: pass a name, a row of splagger.ENVS, an environment of our protocol "
        "(splagger.envs.Env), or what splagger.from_gymnasium and splagger.from_gymnax return"
    )


def _ours(name: str) -> EnvRow:
    return lookup(ENVS, name, "environment")


def _of_gymnasium(name: str) -> EnvRow:
    return row_of(from_gymnasium(name))


@ft.cache
def _of_gymnax(name: str) -> EnvRow:
    """Returns the row of a gymnax environment by its gymnax name; gymnax must be installed."""
    try:
        import gymnax  # pyright: ignore[reportMissingImports]

        env, params = gymnax.make(name)
    except (ImportError, ValueError) as error:
        raise SettingError(f"gymnax:{name} cannot be created ({error})") from None
    return row_of(from_gymnax(env, params), f"gymnax:{name}")


@ft.cache
def _of_module(path: str) -> EnvRow:
    """Returns the row of an environment, or of a function or class that creates one, by its import path."""
    found = import_object(path, f"jax:{path}")
    env = found
    if isinstance(found, type) or not isinstance(found, _ENVIRONMENTS):
        if not callable(found):
            raise SettingError(
                f"jax:{path} is neither an environment nor a function that creates one: {found!r}"
            )
        env = found()
    return env if isinstance(env, EnvRow) else row_of(env, f"jax:{path}")


_ENVIRONMENTS = (EnvRow, AbstractMetaEnv, Env)

# prefix of a name → function that returns its row
SOURCES: dict[str, Callable[[str], EnvRow]] = {
    "gym": _of_gymnasium,
    "gymnax": _of_gymnax,
    "jax": _of_module,
}
