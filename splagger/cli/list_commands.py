"""Commands that list what there is: environments and methods, settings, and the zoo's trained agents."""

import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from splagger.cli.formatting import show
from splagger.cli.grid_options import Grid
from splagger.cli.options import AssignmentsOption, OutputFolder
from splagger.errors import SettingError
from splagger.ranges import FLOAT_MAX, FLOAT_MIN, Range, setting_types
from splagger.runs.record import as_text
from splagger.tables import Table, lookup
from splagger.zoo import Card, cards
from splagger.zoo.listing import card_table, zoo_table

Positional = tyro.conf.Positional
Names = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class List:
    """List all environments and methods."""

    json: bool = False
    """Print JSON."""

    def __call__(self) -> None:
        from splagger.methods import ALIASES, METHODS
        from splagger.registry import ENVS

        if self.json:
            envs = {
                name: {"summary": r.summary, "episodes": r.episodes, "frames": r.frames}
                for name, r in ENVS.items()
            }
            found = {"environments": envs, "methods": sorted(METHODS), "aliases": ALIASES}
            print(json.dumps(found, indent=2))
            return
        rows = [(n, f"{r.episodes}", f"{r.frames / 1e6:g}M", r.summary) for n, r in ENVS.items()]
        show(Table("Environments", ("name", "episodes", "frames", ""), rows))
        print(
            "  and others: gym:ID, gym:MODULE:FUNCTION, jax:MODULE:NAME, gymnax:ID, xland:ID/RULESETS"
        )
        aliases = {name: alias for alias, name in ALIASES.items()}
        rows = [
            (
                name,
                method.encoder,
                type(method.aggregator).__name__ if method.skip < 1 else "none",
                f"{method.skip:g}",
                aliases.get(name, ""),
            )
            for name, method in METHODS.items()
            if name not in ALIASES
        ]
        show(Table("Methods", ("name", "encoder", "aggregator", "skip", "also called"), rows))


@dataclass(frozen=True)
class Settings:
    """List every setting that --set can change for an environment and a method, with its present value.

    Example: splagger settings t-ls splagger
    """

    env: Annotated[Positional[str], tyro.conf.arg(metavar="ENV")]
    """The environment, as for `train`."""
    method: Annotated[Positional[str], tyro.conf.arg(metavar="METHOD")] = "splagger"
    """The method, as for `train`."""
    set: AssignmentsOption = ()
    """Other settings, as NAME=VALUE; some environments of others need env.max_steps."""

    def __call__(self) -> None:
        from splagger.registry import SMALL
        from splagger.runs.run import Run
        from splagger.runs.settings import assignments

        settings = assignments(self.set)
        is_small = Grid().is_small_by_default(self.env, settings)
        settings = SMALL | settings if is_small else settings
        run = Run.create(self.env, self.method, overrides=settings)
        if is_small:
            print(
                f"{self.env} on a CPU: the compact network, as `train` uses it without --full and --set network.…",
                file=sys.stderr,
            )
        groups = {
            "env": run.row.env,
            "method": run.method,
            "network": run.row.network,
            "ppo": run.row.ppo,
        }
        for name, group in groups.items():
            if rows := list(settings_of(name, group)):
                show(Table(name, ("--set", "values", "now", ""), rows))


@dataclass(frozen=True)
class Zoo:
    """List the trained agents inside the package. `watch`, `inspect`, `evaluate` and splagger.load take their names."""

    names: Names = ()
    """Agents whose cards are shown in full; by default a table of all."""
    make: bool = False
    """Make these agents again: train them, and write their files and cards to --out."""
    out: OutputFolder = Path("runs/zoo")
    """Folder for agents that are made again."""

    def __call__(self) -> None:
        if self.make and not self.names:
            raise SettingError("--make needs the name of an agent, such as t-ls/splagger")
        if not self.names:
            show(zoo_table())
        for name in self.names:
            card = self._made(name) if self.make else lookup(cards(), name, "agent in the zoo")
            show(card_table(card))

    def _made(self, name: str) -> Card:
        from splagger.agents.making import make

        return make(name, self.out)


def settings_of(group: str, owner: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yields (name, allowed values, present value, meaning) of every field that a user can set."""
    types = setting_types(owner)  # none for environments of others that are no dataclasses
    meanings = comments_of(type(owner)) if types else {}
    for name, hint in types.items():
        if (group, name) == ("method", "name") or name in getattr(owner, "IDENTITY", ()):
            continue
        value, values = getattr(owner, name), values_of(hint)
        if values:
            yield f"{group}.{name}", values, as_text(value), meanings.get(name, "")
        elif group.startswith("method"):  # its aggregator, aggregators inside of it, and its latent
            yield from settings_of(f"{group}.{name}", value)


def values_of(hint: Any) -> str:
    """Returns the allowed values of a type in words; empty if a text cannot give one.

    >>> from splagger.ranges import Count
    >>> values_of(Count | None)
    'int ≥ 1, none'
    """
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        ranges = [rule for rule in hint.__metadata__ if isinstance(rule, Range)]
        return values_of(options[0]) + (_bounds(ranges[-1]) if ranges else "")
    if origin in (types.UnionType, typing.Union):
        named = ("none" if option is type(None) else values_of(option) for option in options)
        return ", ".join(filter(None, named))
    if origin is tuple:
        if options[-1:] != (...,):
            return ",".join(map(values_of, options))
        inner = values_of(options[0])
        return f"{inner}, …" if inner else ""
    if hasattr(hint, "_fields"):
        return ",".join(hint._fields)
    return hint.__name__ if hint in (bool, int, float, str) else ""


def _bounds(limits: Range) -> str:
    if limits.closed:
        return f" from {limits.low:g} to {limits.high:g}"
    if limits.low <= -FLOAT_MAX:
        return ""
    return " > 0" if limits.low == FLOAT_MIN else f" ≥ {limits.low:g}"


def comments_of(owner: type) -> dict[str, str]:
    """Returns the comment behind each field of a class, or the entry for it in the docstring."""
    found: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("splagger"):
            text = inspect.getsource(base)
            found |= dict(re.findall(r"^ {4}(\w+): [^#\n]*(?:#) (.*)$", text, re.MULTILINE))
            found |= dict(re.findall(r"^ *- `(\w+)`: (.*?)\.?$", base.__doc__ or "", re.MULTILINE))
    return found
