"""Recipes: how each agent of the zoo is made. `splagger zoo --make NAME` makes one again."""

import functools as ft
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# Layer sizes of the compact network, which `splagger train --small` uses too.
COMPACT = {
    "network.embedding": (16, 8, 8),
    "network.output_size": 12,
    "network.state_embedding": 32,
    "network.latent_embedding": 8,
    "network.hidden": (32, 32),
    "network.width_factor": 0.25,
    "network.decoder_hidden": (16, 16),
}
# A network between the compact one and the paper's, for the Planning Game, in which an agent must remember a map.
MEDIUM = {
    "network.embedding": (32, 8, 8),
    "network.output_size": 24,
    "network.state_embedding": 64,
    "network.latent_embedding": 16,
    "network.hidden": (64, 64),
    "network.width_factor": 0.5,
}


# Shorter rollouts of more environments: as many frames per update, in fewer steps one after the other.
MAZE = {"ppo.envs": 28, "ppo.steps": 400, "ppo.clip": 0.2, "ppo.eval_interval": 10}
MINE = {"ppo.envs": 32, "ppo.steps": 400, "ppo.clip": 0.2, "ppo.eval_interval": 5}
MINE |= {"ppo.anneal": False, "ppo.entropy": 0.01}
PLANNING = {"ppo.envs": 112, "ppo.steps": 100, "ppo.clip": 0.2, "ppo.eval_interval": 40}
PLANNING |= {"ppo.discount": 0.97, "ppo.entropy": 0.003, "ppo.eval_tasks": 64}
SELDOM = {"ppo.eval_interval": 20}
REPEAT_FIRST = "gym:popgym:popgym-RepeatFirstEasy-v0"


class Interval(NamedTuple):
    """An interquartile mean over seeds with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Recipe:
    """A run, of whose members the best becomes an agent of the zoo.

    - `network`, `settings`: what differs from the environment's row in `splagger.ENVS`, as `--set` takes it.
    - `full_size`: the return at the end of the recorded runs with the paper's network and protocol, if there are any.
    """

    env: str
    method: str
    frames: int
    rates: tuple[float, ...] = (1e-3,)
    seeds: int = 1
    network: Mapping[str, Any] = field(default_factory=lambda: COMPACT)
    settings: Mapping[str, Any] = field(default_factory=dict)
    full_size: Interval | None = None


_maze = ft.partial(Recipe, seeds=4, settings=MAZE)
_planning = ft.partial(Recipe, rates=(1e-3, 5e-4), seeds=3, network=MEDIUM, settings=PLANNING)
_repeat_first = ft.partial(
    Recipe, REPEAT_FIRST, frames=400_000, rates=(3e-3,), settings={"env.max_steps": 60}
)

RECIPES: dict[str, Recipe] = {
    "t-ls/splagger": Recipe("t-ls", "splagger", 600_000, full_size=Interval(16.0, 16.0, 16.0)),
    "t-ls/rnn": _maze("t-ls", "rnn", 8_176_000, (3e-3, 1e-3), full_size=Interval(2.11, 1.61, 4.74)),
    "t-agreement/splagger": _maze(
        "t-agreement", "splagger", 2_000_000, full_size=Interval(15.78, 15.58, 15.89)
    ),
    "t-agreement/rnn": _maze(
        "t-agreement", "rnn", 8_176_000, (3e-3, 1e-3), full_size=Interval(15.73, 15.13, 15.97)
    ),
    "t-latent/splagger": Recipe(
        "t-latent", "splagger", 800_000, full_size=Interval(15.39, 15.23, 15.61)
    ),
    "t-latent/rnn": Recipe("t-latent", "rnn", 800_000, full_size=Interval(15.44, 15.26, 15.62)),
    "planning/splagger": _planning(
        "planning", "splagger", 20_608_000, full_size=Interval(22.45, 21.88, 23.14)
    ),
    "planning/rnn": _planning(
        "planning", "rnn", 21_056_000, full_size=Interval(24.85, 23.65, 25.58)
    ),
    "mc-ls/splagger": Recipe("mc-ls", "splagger", 1_500_000, settings=MINE),
    "mc-ls/rnn": Recipe("mc-ls", "rnn", 6_000_000, seeds=4, settings=MINE | SELDOM),
    "cheetah-dir-small/splagger": Recipe("cheetah-dir-small", "splagger", 1_500_000, network={}),
    "cheetah-dir-small/rnn": Recipe("cheetah-dir-small", "rnn", 1_920_000, seeds=3, network={}),
    "goal-grid/splagger": Recipe("goal-grid", "splagger", 5_000_000, seeds=4, settings=SELDOM),
    "dark-room/splagger": Recipe("dark-room", "splagger", 9_830_400, seeds=4, settings=SELDOM),
    "repeat-first/splagger": _repeat_first("splagger"),
    "repeat-first/rnn": _repeat_first("rnn"),
}
