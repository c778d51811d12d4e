"""The code of classes and functions as text: an edited one makes a different experiment."""

import dataclasses
import functools as ft
import inspect
import os
import struct
import sys
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import numpy as np

# Attributes of a class that Python or `dataclass` adds.
_GENERATED = ("__", "_abc_")
# What wraps a function: the attributes that lead to it, and the types and libraries of the objects that have them.
_WRAPPED = ("fget", "__func__", "func", "__wrapped__", "method")
_WRAPPERS = (types.MethodType, property, staticmethod, classmethod, ft.cached_property)
_WRAPPERS += (type(ft.cache(len)),)
_LIBRARIES = ("jax", "jaxlib", "equinox")
_CHECKERS = ("jaxtyping", "beartype")


def is_from_this_package(kind: Any) -> bool:
    """Returns whether a class or a function is defined in this package."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def consists_of_ours(value: Any) -> bool:
    """Returns whether the class of a dataclass, such as an aggregator, and those of all inside it belong to this package."""
    inner = (part for part in vars(value).values() if dataclasses.is_dataclass(part))
    return is_from_this_package(type(value)) and all(map(consists_of_ours, inner))


def path_of(named: Any) -> str:
    """Returns "module:name" of a class or a function. Those of a running script have its name, as where it is imported."""
    module = getattr(named, "__module__", "") or ""
    if module == "__main__":
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or module).stem
    return f"{module}:{getattr(named, '__qualname__', named.__name__)}"


def function_of(value: Any) -> types.FunctionType | None:
    """Returns the function inside a method, a property, or what Python, JAX and Equinox make of one; else None.

    A function that a decorator returned is that function, which holds the decorated one.
    """
    for attribute in _WRAPPED:
        library = type(value).__module__.partition(".")[0]
        if isinstance(value, _WRAPPERS) or library in _LIBRARIES:
            inner = getattr(value, attribute, None)
            value = value if inner is None else inner
    return _unchecked(value) if isinstance(value, types.FunctionType) else None


def undecorated(function: types.FunctionType | None) -> types.FunctionType | None:
    """Returns the function inside all decorators that name it, as those of `functools.wraps` do."""
    while isinstance(inner := getattr(function, "__wrapped__", None), types.FunctionType):
        function = inner
    return function


def _unchecked(function: types.FunctionType) -> types.FunctionType:
    """Returns the function that jaxtyping and beartype check; their checks have other names in every process."""
    library = str(function.__globals__.get("__name__", "")).partition(".")[0]
    is_check = library in _CHECKERS or function.__code__.co_filename.startswith("<@beartype")
    inner = getattr(function, "__wrapped__", None)
    return _unchecked(inner) if is_check and isinstance(inner, types.FunctionType) else function


@ft.cache
def loaded_source(kind: type) -> str:
    """Returns the source of a class when it was first used. Later edits of the file do not change the class."""
    return source_of(kind)


def source_of(kind: type) -> str:
    """Returns the source of a class and of its bases in the same package."""
    return "\n".join(_source_of_one(base) for base in own_bases(kind))


def is_made_by_a_function(kind: type) -> bool:
    """Returns whether a class is defined inside a function, whose arguments its values may depend on."""
    return "<locals>" in kind.__qualname__


def is_data(name: str, value: Any) -> bool:
    """Returns whether an attribute of a class is plain data that the class, and not Python, has given it."""
    return not name.startswith(_GENERATED) and value_text(value) is not None


def is_generated(function: types.FunctionType) -> bool:
    """Returns whether `dataclass` made this method of a class."""
    is_made = function.__code__.co_qualname.startswith("__create_fn__")
    return is_made or function.__globals__.get("__name__") in ("dataclasses", "reprlib")


def own_bases(kind: type) -> list[type]:
    """Returns a class and its bases in the same package, in the order of Python's look-up."""
    package = kind.__module__.partition(".")[0]
    return [base for base in kind.__mro__ if base.__module__.partition(".")[0] == package]


def is_stale(kind: type) -> bool:
    """Returns whether the file of a class was edited after its import, as far as Python's cache tells.

    The import writes the time and the size of the file there, unless this is disabled or not permitted.
    """
    spec: Any = getattr(sys.modules.get(kind.__module__), "__spec__", None)
    if sys.dont_write_bytecode or type(getattr(spec, "loader", None)) is not SourceFileLoader:
        return False
    try:
        cached, file = Path(spec.cached), Path(spec.origin).stat()
        flags, written, size = struct.unpack("<4xIII", cached.read_bytes()[:16])
        is_current = os.access(cached.parent, os.W_OK)
    except (TypeError, OSError, struct.error):
        return False
    now = int(file.st_mtime) & 0xFFFFFFFF, file.st_size & 0xFFFFFFFF
    return is_current and flags == 0 and (written, size) != now


def _source_of_one(kind: type) -> str:
    """The source of a class. One that was typed at a prompt or in a notebook has none, but its functions have code."""
    try:
        if not is_stale(kind):
            return inspect.getsource(kind)
    except (OSError, TypeError):
        pass
    found = []
    for name, value in vars(kind).items():
        if isinstance(value, type):
            inside = value.__qualname__ == f"{kind.__qualname__}.{value.__name__}"
            text = _source_of_one(value) if inside else path_of(value)
        else:
            text = _text(value) if not name.startswith(_GENERATED) or function_of(value) else None
        found += [(name, text)] if text else []
    return repr(sorted(found))


def _text(value: Any) -> str | None:
    """A function, or a value, as text; None for objects whose text may depend on the process."""
    if isinstance(value, ft.partial | ft.partialmethod):
        return repr((_text(value.func), value_text([value.args, value.keywords])))
    return text_of(function) if (function := function_of(value)) else value_text(value)


def text_of(function: types.FunctionType) -> str:
    """Returns the instructions of a function, and the defaults of its arguments if it has any."""
    named = sorted((function.__kwdefaults__ or {}).items())
    values = (*(function.__defaults__ or ()), *(value for _, value in named))
    defaults = [_text(value) or path_or_kind(value) for value in values]
    names = [name for name, _ in named]
    return _constant(function.__code__) + (repr((names, defaults)) if defaults else "")


def constants_of(function: types.FunctionType) -> dict[str, Any]:
    """Returns the global variables of plain data that a function of others names, such as constants of its module."""
    if is_from_this_package(function):
        return {}
    around, names = function.__globals__, sorted(_names_in(function.__code__))
    return {name: around[name] for name in names if name in around and value_text(around[name])}


def classes_of(function: types.FunctionType | None) -> list[type]:
    """Returns the classes of others that a function names."""
    names = sorted(_names_in(function.__code__)) if function else []
    found = [function.__globals__.get(name) for name in names] if function else []
    return [kind for kind in found if isinstance(kind, type) and not is_from_this_package(kind)]


def _names_in(code: types.CodeType) -> set[str]:
    """The names in the instructions of a function, and in those of functions inside it."""
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return {*code.co_names}.union(*map(_names_in, inner))


def path_or_kind(value: Any) -> str:
    """Returns the path of a class or a function, or that of an object's class."""
    return path_of(value if hasattr(value, "__name__") else type(value))


def _constant(value: Any) -> str:
    """A constant of a function as text that does not depend on the process; of code, its instructions."""
    if isinstance(value, types.CodeType):
        constants = [_constant(constant) for constant in value.co_consts]
        return repr((value.co_code.hex(), constants, value.co_names, value.co_varnames))
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)


def value_text(value: Any) -> str | None:
    """Returns numbers, texts, arrays and containers of these as text; None for objects whose text may depend on the process."""
    if isinstance(value, tuple | list | set | frozenset):
        parts = [value_text(part) for part in value]
        ordered = parts if isinstance(value, tuple | list) else sorted(map(str, parts))
        return None if None in parts else repr(ordered)
    if isinstance(value, dict):
        return value_text([*value.items()])
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        return _array_text(value)
    plain = isinstance(value, bool | int | float | complex | str | bytes | None)
    return repr(value) if plain else None


def _array_text(value: Any) -> str | None:
    if str(value.dtype).startswith("key<"):
        from jax.random import key_data

        return repr((str(value.dtype), key_data(value).tolist()))
    array = np.asarray(value)
    if array.dtype == object:
        data = value_text(array.tolist())
        return data and repr((str(array.dtype), array.shape, data))
    return repr((str(array.dtype), array.shape, array.tobytes()))
