"""`splagger settings`: every setting that --set can change, with its range, its value and what it means."""

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from splagger.cli.formatting import show
from splagger.ranges import FLOAT_MAX, FLOAT_MIN, Range, type_hints
from splagger.tables import Table

Positional = tyro.conf.Positional


@dataclass(frozen=True)
class Settings:
    """List every setting that --set can change for an environment and a method, with its present value."""

    env: Annotated[Positional[str], tyro.conf.arg(metavar="ENV")]
    """The environment, as for `train`."""
    method: Annotated[Positional[str], tyro.conf.arg(metavar="METHOD")] = "splagger"
    """The method, as for `train`."""

    def __call__(self) -> None:
        from splagger.runs.run import Run

        run = Run.create(self.env, self.method)
        groups = {
            "env": run.row.env,
            "method": run.method,
            "network": run.row.network,
            "ppo": run.row.ppo,
        }
        for name, group in groups.items():
            if rows := list(settings_of(name, group)):
                show(Table(name, ("--set", "values", "now", ""), rows))


def settings_of(group: str, owner: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yields (name, allowed values, present value, meaning) of every field that a user can set."""
    if not dataclasses.is_dataclass(owner):  # as environments of others may be
        return
    meanings, hints = comments_of(type(owner)), type_hints(type(owner))
    for field in dataclasses.fields(owner):
        if field.name.startswith("_") or (group, field.name) == ("method", "name"):
            continue
        if field.name in getattr(owner, "IDENTITY", ()):
            continue
        value = getattr(owner, field.name)
        kind = kind_of(hints[field.name])
        if kind:
            yield f"{group}.{field.name}", kind, shown(value), meanings.get(field.name, "")


def kind_of(hint: Any) -> str:
    """Returns the allowed values of a type in words; empty if a text cannot give one.

    >>> from splagger.ranges import Count
    >>> kind_of(Count | None)
    'int ≥ 1, none'
    """
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        ranges = [rule for rule in hint.__metadata__ if isinstance(rule, Range)]
        return kind_of(options[0]) + (_bounds(ranges[-1]) if ranges else "")
    if origin in (types.UnionType, typing.Union):
        return ", ".join(filter(None, (_option(option) for option in options)))
    if origin is tuple:
        inner = kind_of(options[0])
        return f"{inner}, …" if inner else ""
    if hasattr(hint, "_fields"):
        return ",".join(hint._fields)
    return hint.__name__ if hint in (bool, int, float, str) else ""


def _option(hint: Any) -> str:
    return "none" if hint is type(None) else kind_of(hint)


def _bounds(limits: Range) -> str:
    if limits.closed:
        return f" from {limits.low:g} to {limits.high:g}"
    if limits.low <= -FLOAT_MAX:
        return ""
    return " > 0" if limits.low == FLOAT_MIN else f" ≥ {limits.low:g}"


def shown(value: Any) -> str:
    """Returns a value as --set takes it."""
    if isinstance(value, tuple):
        return ",".join(map(shown, value))
    return str(value).lower() if value is None or isinstance(value, bool) else f"{value}"


def comments_of(owner: type) -> dict[str, str]:
    """Returns the comment behind each field of a class, or the entry for it in the docstring."""
    found: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("splagger"):
            text = inspect.getsource(base)
            found |= dict(re.findall(r"^ {4}(\w+): [^#\n]*(?:#) (.*)$", text, re.MULTILINE))
            found |= dict(re.findall(r"^ *- `(\w+)`: (.*?)\.?$", base.__doc__ or "", re.MULTILINE))
    return found
