"""Settings as plain data, and the digest that identifies an experiment."""

import dataclasses
import functools as ft
import hashlib
import inspect
import json
import types
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np

from splagger.files.storage import warn
from splagger.ranges import type_hints
from splagger.runs.record import NEWER_FIELDS

NEWER_PARTS = ("environment", "task_code", "arrays")  # of the descriptions of bridges


LIBRARIES = ("gymnax", "xminigrid")  # whose classes are known by their names, not by their code
_NAMING = ("__module__", "__qualname__", "__doc__", "__firstlineno__")  # of a class


def plain(value: Any) -> Any:
    """Returns settings as JSON data, with all their fields; equal settings give equal data.

    A bridge to another library, and an object that is no dataclass, describes itself by a method `describe`. For
    dataclasses of others, a method of that name may mean anything, and is not called. Bridges may name objects of the
    library, which are described by their content.
    """
    is_dataclass = dataclasses.is_dataclass(value) and not isinstance(value, type)
    own = _function(getattr(type(value), "describe", None))
    if own and is_from_this_package(own):
        return {name: _content(part) for name, part in own(value).items()}
    if own and not is_dataclass:
        return own(value)
    if is_dataclass:
        floats = _float_fields(type(value))
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        fields = {k: float(v) if k in floats and type(v) is int else v for k, v in fields.items()}
        fields = {k: v for k, v in fields.items() if (k, v) not in NEWER_FIELDS.items()}
        return {"kind": type(value).__name__, **_code(type(value)), **fields}
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def agrees(found: Any, recorded: Any) -> bool:
    """Returns whether a run is the recorded one, whose record may be from before bridges described objects."""
    if "environment" in found and "environment" in recorded:
        ours, theirs = found["environment"], recorded["environment"]
        ours = {k: v for k, v in ours.items() if k not in NEWER_PARTS or k in theirs}
        found = found | {"environment": ours}
    return found == recorded


def differences(found: Any, recorded: Any, path: str = "") -> Iterator[str]:
    """Yields what differs between two descriptions, in words.

    >>> list(differences({"aggregator": {"beta": 4.0}}, {"aggregator": {"beta": 2.0}}))
    ['aggregator.beta was 2.0 and is 4.0']
    """
    if not (isinstance(found, dict) and isinstance(recorded, dict)):
        if found != recorded:
            yield f"{path} was {recorded!r:.60} and is {found!r:.60}"
        return
    for name in {**recorded, **found}:
        ours, theirs = found.get(name), recorded.get(name)
        if name == "code" and ours != theirs:
            yield f"the code of {found.get('kind') or recorded.get('kind') or path} has changed"
        else:
            yield from differences(ours, theirs, f"{path}.{name}".removeprefix("."))


def digest_of(description: dict[str, Any]) -> str:
    """Returns ten hexadecimal digits; equal descriptions have equal digests."""
    text = json.dumps(description, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def is_from_this_package(kind: type | types.FunctionType) -> bool:
    """Returns whether a class or a function is defined in this package."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def consists_of_ours(value: Any) -> bool:
    """Returns whether the class of a dataclass, such as an aggregator, and those of all inside it belong to this package."""
    inner = (part for part in vars(value).values() if dataclasses.is_dataclass(part))
    return is_from_this_package(type(value)) and all(map(consists_of_ours, inner))


@ft.cache
def _float_fields(kind: type) -> frozenset[str]:
    """The fields that hold floats, whose whole values may be written as integers: skip=1 is skip=1.0."""
    try:
        hints = type_hints(kind)
    except Exception:  # annotations that cannot be evaluated, in a class of the user
        return frozenset()
    bare = {name: getattr(hint, "__origin__", hint) for name, hint in hints.items()}
    kinds = {name: {hint, *typing.get_args(hint)} for name, hint in bare.items()}
    return frozenset(name for name, found in kinds.items() if float in found and int not in found)


def _content(value: Any, outer: tuple[int, ...] = ()) -> Any:
    """An object of another library as plain data: its class, the code of a custom class, and its attributes."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if id(value) in outer:
        return "itself"
    outer = (*outer, id(value))
    if isinstance(value, list | tuple):
        return [_content(part, outer) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_content(part, outer), sort_keys=True) for part in value)
    if isinstance(value, dict):
        return {str(name): _content(part, outer) for name, part in value.items()}
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        return hashlib.sha256(str(_value(value)).encode()).hexdigest()[:10]
    if isinstance(value, ft.partial):
        return _content({"of": value.func, "given": value.args, **value.keywords}, outer)
    if isinstance(value, types.ModuleType):
        return value.__name__
    if function := _function(value):
        owner = getattr(value, "__self__", None)
        return _described(function, outer) | ({"of": _content(owner, outer)} if owner else {})
    if isinstance(value, type | types.BuiltinFunctionType | np.ufunc):
        return _path(value)
    library = type(value).__module__.partition(".")[0]
    code = {} if library in LIBRARIES else _code(type(value))
    return {"kind": _path(type(value)), **code, **_content(_attributes(value), outer)}


def _described(function: types.FunctionType, outer: tuple[int, ...]) -> dict[str, Any]:
    """A function as plain data: its name, its code, and the values of the variables around it."""
    code = hashlib.sha256(_text_of(function).encode()).hexdigest()[:10]
    inside = []
    for cell in function.__closure__ or ():
        try:
            inside.append(_content(cell.cell_contents, outer))
        except ValueError:  # a variable without a value
            inside.append("empty")
    return {"function": _path(function), "code": code, "inside": inside}


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object without those that it computed and kept; of one that has none, its text."""
    kind = type(value)
    slots = [name for base in kind.__mro__ for name in _names(base.__dict__.get("__slots__", ()))]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    found |= getattr(value, "__dict__", {})
    computed = lambda name: isinstance(getattr(kind, name, None), ft.cached_property)  # noqa: E731
    text = repr(value)
    is_plain = not (found or slots or hasattr(value, "__dict__") or " at 0x" in text)
    return {"text": text} if is_plain else {k: v for k, v in found.items() if not computed(k)}


def _names(slots: Any) -> list[str]:
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _path(named: Any) -> str:
    return f"{getattr(named, '__module__', '')}:{getattr(named, '__qualname__', named.__name__)}"


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
        found = {name: _text_of(f) for name, f in functions.items()}
        found |= {name: repr(v) for name, v in own.items() if isinstance(v, int | float | str)}
        others = {name: _value(v) for name, v in own.items() if not name.startswith("_")}
        found |= {name: text for name, text in others.items() if text and name not in found}
        return repr(sorted(found.items()))


def _text_of(function: types.FunctionType) -> str:
    """The instructions of a function, and the defaults of its arguments if it has any."""
    named = sorted((function.__kwdefaults__ or {}).items())
    defaults = [_value(value) for value in (*(function.__defaults__ or ()), *named)]
    return _constant(function.__code__) + "".join(filter(None, map(str, defaults)))


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


def _value(value: Any) -> str | None:
    """A class attribute or a default as text; None for objects whose text may depend on the process."""
    if isinstance(value, tuple | list | set | frozenset):
        parts = [_value(part) for part in value]
        ordered = parts if isinstance(value, tuple | list) else sorted(map(str, parts))
        return None if None in parts else repr(ordered)
    if isinstance(value, dict):
        return _value([*value.items()])
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        if str(value.dtype).startswith("key<"):
            from jax.random import key_data

            return repr((str(value.dtype), key_data(value).tolist()))
        array = np.asarray(value)
        data = array.tolist() if array.dtype == object else array.tobytes()
        return repr((str(array.dtype), array.shape, data))
    return (
        repr(value)
        if isinstance(value, bool | int | float | complex | str | bytes | None)
        else None
    )
