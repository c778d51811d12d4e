"""From whatever an experiment is asked to run on to a row: names of ours, names of others', and objects."""

import functools as ft
from collections.abc import Callable
from typing import Any

from splagger.envs import AbstractMetaEnv, Env, HostMetaEnv, MetaEnv, from_gymnasium, from_gymnax
from splagger.envs.places import find
from splagger.ppo.types import PPOConfig
from splagger.registry import ENVS, EnvRow
from splagger.tables import lookup

# What an environment is trained with of which nothing is known; any of it can be set.
PLAIN_PPO = PPOConfig(
    steps=256,
    clip=0.2,
    discount=0.99,
    entropy=0.01,
    mask_truncated=True,
    eval_interval=10,
    buffer=10_000,
)
PLAIN_FRAMES = 1_000_000


def resolve(env: Any) -> EnvRow:
    """The row of a name ("t-ls", "gym:CartPole-v1", …), of an environment, or the row itself."""
    if isinstance(env, EnvRow):
        return env
    if isinstance(env, str):
        source, colon, name = env.partition(":")
        return lookup(SOURCES, source, "source of environments")(name) if colon else _ours(env)
    return row_of(env)


def row_of(env: Any, name: str = "") -> EnvRow:
    """A row for an environment that is in no table, with plain settings."""
    if isinstance(env, type):
        raise ValueError(f"{env.__name__} is a class: give an environment, {env.__name__}(…)")
    if isinstance(env, MetaEnv):
        name = name or env.env.spec.name
        return EnvRow(name, "", env.env, env.episodes, PLAIN_FRAMES, PLAIN_PPO)
    if isinstance(env, HostMetaEnv):
        return EnvRow(env.env.name, "", env.env, env.episodes, PLAIN_FRAMES, PLAIN_PPO)
    if isinstance(env, Env):
        return row_of(MetaEnv(env=env, episodes=1), name)
    raise ValueError(
        f"{env!r} is no environment: give a name, a row of splagger.ENVS, an environment of our protocol "
        "(splagger.envs.Env), or what splagger.envs.from_gymnasium and from_gymnax return"
    )


def _ours(name: str) -> EnvRow:
    return lookup(ENVS, name, "environment")


def _of_gymnasium(name: str) -> EnvRow:
    return row_of(from_gymnasium(name))


@ft.cache
def _of_gymnax(name: str) -> EnvRow:
    """By gymnax's own name; gymnax must be installed."""
    try:
        import gymnax  # pyright: ignore[reportMissingImports]

        env, params = gymnax.make(name)
    except (ImportError, ValueError) as error:
        raise ValueError(f"gymnax:{name} cannot be made ({error})") from None
    return row_of(from_gymnax(env, params), f"gymnax:{name}")


@ft.cache
def _of_module(place: str) -> EnvRow:
    """An environment, or what makes one, by its place: "package.module:name"."""
    try:
        found = find(place)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"jax:{place} cannot be found ({error})") from None
    made = found
    if isinstance(found, type) or not isinstance(found, _ENVIRONMENTS):
        if not callable(found):
            raise ValueError(f"jax:{place} is no environment, nor does it make one: {found!r}")
        made = found()
    return made if isinstance(made, EnvRow) else row_of(made, f"jax:{place}")


_ENVIRONMENTS = (EnvRow, AbstractMetaEnv, Env)

# prefix of a name → what makes its row
SOURCES: dict[str, Callable[[str], EnvRow]] = {
    "gym": _of_gymnasium,
    "gymnax": _of_gymnax,
    "jax": _of_module,
}
