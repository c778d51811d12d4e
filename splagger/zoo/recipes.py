"""Recipes: how each agent of the zoo is made. `splagger zoo --make NAME` makes one again."""

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
# A network between the compact one and the paper's, for tasks in which an agent must remember a map or images.
MEDIUM = {
    "network.embedding": (32, 8, 8),
    "network.output_size": 24,
    "network.state_embedding": 64,
    "network.latent_embedding": 16,
    "network.hidden": (64, 64),
    "network.width_factor": 0.5,
}


# Shorter rollouts of more environments: as many frames per update, in fewer steps one after the other.
MAZE = {"ppo.envs": 28, "ppo.steps": 400, "ppo.clip": 0.2, "ppo.eval_interval": 5}
MINE = {"ppo.envs": 32, "ppo.steps": 400, "ppo.clip": 0.2, "ppo.eval_interval": 5}
MINE |= {"ppo.anneal": False, "ppo.entropy": 0.01}
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


RECIPES: dict[str, Recipe] = {
    "t-ls/splagger": Recipe("t-ls", "splagger", 600_000, full_size=Interval(16.0, 15.91, 16.0)),
    "t-latent/splagger": Recipe(
        "t-latent", "splagger", 800_000, full_size=Interval(15.39, 15.23, 15.61)
    ),
    "mc-ls/splagger": Recipe("mc-ls", "splagger", 1_500_000, settings=MINE),
    "cheetah-dir-small/splagger": Recipe("cheetah-dir-small", "splagger", 1_500_000, network={}),
    "repeat-first/splagger": Recipe(
        REPEAT_FIRST, "splagger", 400_000, (3e-3,), settings={"env.max_steps": 60}
    ),
    "repeat-first/rnn": Recipe(
        REPEAT_FIRST, "rnn", 400_000, (3e-3,), settings={"env.max_steps": 60}
    ),
}
