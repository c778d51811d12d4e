"""Python objects by import path, "package.module:name", and the import path of an object."""

import difflib
import functools as ft
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splagger.errors import FOREIGN_ERRORS, SettingError, cause_of


def import_object(path: str, what: str) -> Any:
    """Imports "package.module:name". If that fails, raises a SettingError that begins with `what`."""
    try:
        return _imported(path)
    except FOREIGN_ERRORS as error:
        raise SettingError(f"{what} {_problem(path, error)}") from error


def _problem(path: str, error: BaseException) -> str:
    """Says whether a path leads nowhere, or to a module that fails while it is imported."""
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        return f"cannot be found ({path!r} must be package.module:name)"
    if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
        return f"cannot be found ({error})"
    if isinstance(error, AttributeError) and error.obj is sys.modules.get(module):
        near = difflib.get_close_matches(name, dir(error.obj))
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"cannot be found ({error}){hint}"
    return f"cannot be imported ({cause_of(error)})"


def _imported(path: str) -> Any:
    add_working_directory()
    module, _, name = path.partition(":")
    if _is_being_imported(module):
        found = sys.modules[module]
    else:
        found = sys.modules["__main__"] if _is_running(module) else importlib.import_module(module)
    return ft.reduce(getattr, name.split("."), found)


def _is_being_imported(module: str) -> bool:
    """Whether the statements of a module still run, such as a training at its top level, which other threads would wait for."""
    return bool(getattr(getattr(sys.modules.get(module), "__spec__", None), "_initializing", False))


def _is_running(module: str) -> bool:
    """Whether a module is the script that runs: importing it would run it a second time."""
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    is_module = getattr(main, "__spec__", None) is not None  # by `python -m`, under its own name
    if (
        script is None
        or is_module
        or module in sys.modules
        or Path(script).stem != module.rpartition(".")[2]
    ):
        return False
    found = importlib.util.find_spec(module)
    return found is not None and found.origin == os.path.abspath(script)


def add_working_directory() -> None:
    """Makes modules in the working directory importable. `python -m` does so; an installed command does not."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def import_path_of(function: Callable[..., Any]) -> str | Callable[..., Any]:
    """Returns the function's import path if it can be imported again from there, else the function itself."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    try:
        found = ft.reduce(getattr, name.split("."), sys.modules[module])
    except (KeyError, AttributeError):
        return function
    return f"{module}:{name}" if found is function and module != "__main__" else function


def label_of(what: str, function: Callable[..., Any]) -> str:
    """Returns "script:name" for a function in the running script; raises an error for other local functions."""
    name, main = getattr(function, "__qualname__", "<"), sys.modules["__main__"]
    try:
        found = ft.reduce(getattr, name.split("."), main)
    except AttributeError:
        found = None
    # A cell of a notebook may have defined the function again.
    both = isinstance(found, types.FunctionType) and isinstance(function, types.FunctionType)
    is_named = found == function or (both and not hasattr(function, "__wrapped__"))
    if not is_named or getattr(function, "__module__", "") != "__main__":
        raise SettingError(
            f"{what}: {function!r} has no name that distinguishes its runs from others; define the function in a "
            "module or at the top level of your script"
        )
    return f"{Path(getattr(main, '__file__', 'main')).stem}:{name}"
