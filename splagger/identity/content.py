"""Objects of other libraries and of users as plain data: all that may change what an environment does."""

import functools as ft
import json
import logging
import os
import types
from typing import Any

import numpy as np

from splagger.files.storage import sha256, warn
from splagger.identity.code import (
    constants_of,
    function_of,
    is_data,
    is_from_this_package,
    is_generated,
    is_made_by_a_function,
    is_stale,
    loaded_source,
    own_bases,
    path_of,
    source_of,
    text_of,
    undecorated,
    value_text,
)

# Libraries whose classes and functions are known by their names, not by their code.
LIBRARIES = ("gymnax", "xminigrid", "jax", "jaxlib", "numpy", "equinox", "optax", "flax", "chex")
_PLAIN = (list, tuple, set, frozenset)


class Content:
    """Describes objects. Those that occur again, also inside themselves, are named by their number."""

    def __init__(self, outer: "Content | None" = None):
        """Begins with the objects that have occurred in `outer`, and leaves it as it is."""
        # id → number and object, whose id stays taken
        self._seen: dict[int, tuple[int, Any]] = dict(outer._seen) if outer else {}
        self._next = outer._next if outer else 0

    def of(self, value: Any) -> Any:
        """Returns a value as JSON data that does not depend on the process; equal data mean equal behavior."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, bytes | bytearray | complex):
            return {type(value).__name__: _digest(repr(value))}
        if isinstance(value, list | tuple | set | frozenset | dict):
            return self._container(value)
        if isinstance(value, type):
            return {"class": path_of(value), **self._code_of_others(value)}
        if hasattr(value, "__array__") and hasattr(value, "dtype"):
            return self._array(value)
        if isinstance(value, types.ModuleType):
            return value.__name__
        if isinstance(value, logging.Logger):  # which knows all others
            return f"logger {value.name}"
        if isinstance(value, os.PathLike):
            return {"path": os.fspath(value)}
        if isinstance(value, ft.partial):
            parts = {"of": value.func, "given": value.args, "named": value.keywords}
            return {name: self.of(part) for name, part in parts.items()}
        if (function := function_of(value)) is not None:
            return self._function(value, function)
        if isinstance(value, types.BuiltinFunctionType | np.ufunc):
            return self._built_in(value)
        return self._object(value)

    def variables(self, function: types.FunctionType, but: str = "") -> dict[str, Any]:
        """Returns the variables around a function that it uses, without the one called `but`."""
        found = {}
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            if name != but:
                try:
                    found[name] = self.of(cell.cell_contents)
                except ValueError:  # a variable without a value
                    found[name] = "empty"
        return found

    def defaults(self, function: types.FunctionType) -> dict[str, Any]:
        """Returns the defaults of a function's arguments, if there are any."""
        found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
        return {"defaults": self.of(found)} if found else {}

    def _container(self, value: Any) -> Any:
        kind = type(value)
        if (number := self._occurred(value)) is not None:
            return f"object {number}"
        parts = self._items(value)
        # Equal containers are alike, whether they are one object or several.
        del self._seen[id(value)]
        if kind in _PLAIN or kind is dict:
            return parts
        return {"kind": path_of(kind), **self._code_of_others(kind), "items": parts}

    def _items(self, value: Any) -> Any:
        if isinstance(value, dict):
            if all(type(name) is str for name in value):
                return {name: self.of(part) for name, part in value.items()}
            pairs = [[self.of(name), self.of(part)] for name, part in value.items()]
            return {"pairs": sorted(pairs, key=_text)}
        if isinstance(value, set | frozenset):  # whose order depends on the process
            return sorted((Content(self).of(part) for part in value), key=_text)
        return [self.of(part) for part in value]

    def _array(self, value: Any) -> Any:
        text = value_text(value)
        if text is None:  # of objects
            array = np.asarray(value)
            return {"shape": list(array.shape), "items": self.of(array.ravel().tolist())}
        return _digest(text)

    def _function(self, value: Any, function: types.FunctionType) -> dict[str, Any]:
        found: dict[str, Any] = {"function": path_of(function)}
        if _library(function) not in LIBRARIES:
            found["code"] = _digest(text_of(function))
        if (owner := getattr(value, "__self__", None)) is not None:
            found["of"] = self.of(owner)
        if self._occurred(function) is None:
            parts = {"inside": self.variables(function), **self.defaults(function)}
            found |= {name: part for name, part in parts.items() if part}
        return found

    def _built_in(self, value: Any) -> Any:
        owner = getattr(value, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            return path_of(value)
        return {"function": path_of(value), "of": self.of(owner)}

    def _object(self, value: Any) -> Any:
        if (number := self._occurred(value)) is not None:
            return f"object {number}"
        kind = type(value)
        found = {"kind": path_of(kind), **self._code_of_others(kind)}
        if attributes := attributes_of(value):
            return found | {"attributes": self.of(attributes)}
        return found | ({} if getattr(value, "__dict__", None) else self._state(value))

    def _state(self, value: Any) -> dict[str, Any]:
        """What an object without attributes holds, as `copy` would see it, or its text."""
        try:
            reduced = value.__reduce_ex__(2)
        except Exception:
            text = repr(value)
            if " at 0x" not in text:
                return {"text": text}
            _warn_once(
                f"{text[:80]} cannot be described: experiments that differ in it alone share a run folder. Keep it out of "
                "the environment's attributes"
            )
            return {}
        if isinstance(reduced, str):
            return {"text": reduced}
        arguments, state = reduced[1], reduced[2] if len(reduced) > 2 else None
        if arguments in ((), (type(value),)) and state is None:
            return {}
        return {"state": self.of([arguments, state])}

    def _code_of_others(self, kind: type) -> dict[str, Any]:
        return {} if _library(kind) in (*LIBRARIES, "builtins") else code_of(kind)

    def _occurred(self, value: Any) -> int | None:
        """The number of an object that has occurred before; None for a new one, which gets the next number."""
        if id(value) in self._seen:
            return self._seen[id(value)][0]
        self._seen[id(value)] = self._next, value
        self._next += 1
        return None


def code_of(kind: type) -> dict[str, Any]:
    """Returns a digest of a custom class and its bases in the same package, and the variables around its functions."""
    if is_from_this_package(kind):
        return {}
    loaded = loaded_source(kind)
    if loaded != source_of(kind) or is_stale(kind):
        _warn_once(
            f"{kind.__module__}.{kind.__qualname__} was edited after it was imported; this process still uses the old "
            "code. Restart it to use the new one"
        )
    around = _around(kind) if kind not in _DESCRIBED else {}
    return {"code": _digest(loaded)} | ({"around": around} if around else {})


# Classes whose surroundings are being described: these may name the class itself.
_DESCRIBED: list[type] = []


@ft.cache
def _around(kind: type) -> dict[str, Any]:
    """The variables around a class that its functions use, as they were when it was first used."""
    content, found = Content(), {}
    _DESCRIBED.append(kind)
    try:
        for base in own_bases(kind):
            for name, value in vars(base).items():
                function, variables = undecorated(function_of(value)), {}
                if function is not None and not is_generated(function):
                    variables = content.variables(function, but="__class__")
                    variables |= content.of(constants_of(function))
                    if is_made_by_a_function(base):
                        variables |= content.defaults(function)
                elif is_made_by_a_function(base) and is_data(name, value):
                    variables = {"value": content.of(value)}
                found |= {f"{base.__qualname__}.{name}.{k}": v for k, v in variables.items()}
    finally:
        _DESCRIBED.pop()
    return found


@ft.cache
def _warn_once(text: str) -> None:
    warn(text)


def attributes_of(value: Any) -> dict[str, Any]:
    """Returns the attributes of an object without those that it computed and kept."""
    kind = type(value)
    slots = [name for base in kind.__mro__ for name in _names(base.__dict__.get("__slots__", ()))]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    found |= getattr(value, "__dict__", {})
    computed = lambda name: isinstance(getattr(kind, name, None), ft.cached_property)  # noqa: E731
    return {name: part for name, part in found.items() if not computed(name)}


def _names(slots: Any) -> list[str]:
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _library(named: Any) -> str:
    return (getattr(named, "__module__", "") or "").partition(".")[0]


def _digest(text: str) -> str:
    return sha256(text)[:10]


def _text(data: Any) -> str:
    return json.dumps(data, sort_keys=True)
