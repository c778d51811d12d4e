"""Settings as plain data, and the digest that identifies an experiment."""

import dataclasses
import functools as ft
import hashlib
import inspect
import json
import types
from typing import Any, Protocol, runtime_checkable

from splagger.files.storage import warn

# Newer fields are left out of the description at their defaults, so that old digests stay valid.
NEWER_FIELDS = {"update_noise": "stored", "image_channels": [16, 32]}


_NAMING = ("__module__", "__qualname__", "__doc__", "__firstlineno__")  # of a class


@runtime_checkable
class Describes(Protocol):
    """An object with its own description of what determines its behavior."""

    def describe(self) -> dict[str, Any]: ...


def plain(value: Any) -> Any:
    """Returns settings as JSON data, with all their fields; equal settings give equal data."""
    if isinstance(value, Describes) and not isinstance(value, type):
        return value.describe()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        fields = {k: v for k, v in fields.items() if (k, v) not in NEWER_FIELDS.items()}
        return {"kind": type(value).__name__, **_code(type(value)), **fields}
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def digest_of(description: dict[str, Any]) -> str:
    """Returns ten hexadecimal digits; equal descriptions have equal digests."""
    text = json.dumps(description, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def is_from_this_package(kind: type) -> bool:
    """Returns whether a class is defined in this package."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _code(kind: type) -> dict[str, str]:
    """A digest of a custom class and its bases in the same package: editing them makes a different experiment."""
    if is_from_this_package(kind):
        return {}
    loaded, now = _loaded_source(kind), _source(kind)
    if loaded != now:
        warn(
            f"{kind.__module__}.{kind.__qualname__} was edited after it was imported; this process still uses the old "
            "code. Restart it to use the new one"
        )
    return {"code": hashlib.sha256(loaded.encode()).hexdigest()[:10]}


@ft.cache
def _loaded_source(kind: type) -> str:
    """The source of a class when it was first used. Later edits of the file do not change the class."""
    return _source(kind)


def _source(kind: type) -> str:
    package = kind.__module__.partition(".")[0]
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == package]
    return "\n".join(_source_of_one(base) for base in bases)


def _source_of_one(kind: type) -> str:
    """The source of a class. One that was typed at a prompt or in a notebook has none, but its functions have code."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        own = {name: value for name, value in vars(kind).items() if name not in _NAMING}
        functions = {name: f for name, value in own.items() if (f := _function(value))}
        found = {name: _constant(f.__code__) for name, f in functions.items()}
        found |= {name: repr(v) for name, v in own.items() if isinstance(v, int | float | str)}
        return repr(sorted(found.items()))


def _function(value: Any) -> types.FunctionType | None:
    """The function inside a method, a property, a static or class method, or a method of an Equinox module."""
    for attribute in ("method", "fget", "__func__", "__wrapped__"):
        value = getattr(value, attribute, None) or value
    return value if isinstance(value, types.FunctionType) else None


def _constant(value: Any) -> str:
    """A constant of a function as text that does not depend on the process; of code, its instructions."""
    if isinstance(value, types.CodeType):
        constants = [_constant(constant) for constant in value.co_consts]
        return repr((value.co_code.hex(), constants, value.co_names, value.co_varnames))
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
