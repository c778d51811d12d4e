"""The agents to analyze: fresh agents of a method, or trained agents of a run."""

import functools as ft
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Key

from splagger.agent import Agent, Interface, Normalizers, build
from splagger.agents.loading import load, load_seeds
from splagger.agents.player import Player
from splagger.envs import MetaEnv
from splagger.errors import SettingError
from splagger.methods import Method
from splagger.registry import EnvRow
from splagger.runs.analyses import INITIALIZATION
from splagger.runs.run import Number
from splagger.runs.settings import env_settings


class Subject(NamedTuple):
    """Agents of one method with different seeds; leaves of `agents` and `normalizers` have the shape [seeds, …]."""

    method: str
    when: str  # "initialization", or the name of the environment in which they play
    origin: str
    env_name: str
    env: MetaEnv
    seeds: tuple[int, ...]
    agents: Agent
    normalizers: Normalizers


def fresh(method: Method, row: EnvRow, seeds: Sequence[int]) -> Subject:
    """Returns untrained agents with the layer sizes of the environment's row."""
    env = row.meta
    interface = Interface(env.obs_size, env.space, env.horizon, env.images)
    keys = jnp.stack([keys_of(seed)[0] for seed in seeds])
    agents = _build_all(method, interface, row.network, keys)
    normalizers = jax.vmap(Agent.normalizers)(agents)
    origin = f"fresh, with the sizes of {row.name}"
    return Subject(
        method.name, INITIALIZATION, origin, row.name, env, tuple(seeds), agents, normalizers
    )


@ft.partial(jax.jit, static_argnums=(0, 1, 2))
def _build_all(method, interface, network, keys):
    return jax.vmap(lambda key: build(key, method, interface, network))(keys)


def trained(
    run: str | Path | Player,
    every_seed: bool = False,
    trust: bool = False,
    settings: Sequence[str] = (),
    at: Number | None = None,
) -> Subject:
    """Returns the best agent of a run folder, all seeds with its settings if `every_seed`, or the given player.

    - `trust`: that of `splagger.load`.
    - `settings`: other settings of the environment than in training, as `env.NAME=VALUE`.
    - `at`: the frames of a snapshot, see `splagger.load`.
    """
    players = _players(run, every_seed, trust, at)
    changes = "".join(f", {name}={value}" for name, value in players[0].changes.items())
    if settings:
        players = [player.with_env(settings=env_settings(settings)) for player in players]
    best = players[0]
    env: Any = best.environment("analyzing")
    if best.run is None:
        raise SettingError("this player has no run; use a player returned by `splagger.load`")
    row = best.row or best.run.row
    age = "" if best.at is None else f", at {best.at:,} frames"
    stack = lambda *leaves: jnp.stack(leaves)  # noqa: E731
    return Subject(
        best.run.method.name,
        row.folder,
        f"run {best.run.digest}, rate {best.point.rate:g}{age}{changes}",
        row.name,
        env,
        tuple(player.point.seed for player in players),
        jax.tree.map(stack, *(player.agent for player in players)),
        jax.tree.map(stack, *(player.normalizers for player in players)),
    )


def _players(
    run: str | Path | Player, every_seed: bool, trust: bool, at: Number | None
) -> list[Player]:
    if isinstance(run, Player):
        return [run]
    return load_seeds(run, trust, at) if every_seed else [load(run, trust=trust, at=at)]


def keys_of(seed: int) -> Key[Array, " 2"]:
    """Returns one key for the parameters of a seed, and one for its inputs."""
    return jr.split(jr.key(seed))
