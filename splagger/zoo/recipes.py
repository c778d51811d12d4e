"""Recipes: how each agent of the zoo is made. `splagger zoo --make NAME` makes one again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True)
class Recipe:
    """A run, of whose members the best becomes an agent of the zoo.

    - `network`, `settings`: what differs from the environment's row in `splagger.ENVS`, as `--set` takes it.
    """

    env: str
    method: str
    frames: int
    rates: tuple[float, ...] = (1e-3,)
    seeds: int = 1
    network: Mapping[str, Any] = field(default_factory=lambda: COMPACT)
    settings: Mapping[str, Any] = field(default_factory=dict)


RECIPES: dict[str, Recipe] = {
    "t-ls/splagger": Recipe("t-ls", "splagger", 600_000),
}
