"""Python objects by their place, "package.module:name", and the place of an object."""

import functools as ft
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


@ft.cache
def find(place: str) -> Any:
    """What is called so: "package.module:name"."""
    see_this_folder()
    module, _, name = place.partition(":")
    return ft.reduce(getattr, name.split("."), importlib.import_module(module))


def see_this_folder() -> None:
    """A command line tool looks for modules beside itself; people keep theirs where they work."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def place_of(function: Callable[..., Any]) -> str | Callable[..., Any]:
    """The function's place, if it can be found there again; else the function."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    try:
        found = ft.reduce(getattr, name.split("."), sys.modules[module])
    except (KeyError, AttributeError):
        return function
    return f"{module}:{name}" if found is function and module != "__main__" else function


def label_of(what: str, function: Callable[..., Any]) -> str:
    """A name for a function of the program that runs, by its file; others have none."""
    name, main = getattr(function, "__qualname__", "<"), sys.modules["__main__"]
    if "<" in name or getattr(function, "__module__", "") != "__main__":
        raise ValueError(
            f"{what}: {function!r} has no name that tells its runs from others; use a function of a "
            "module, or of your script"
        )
    return f"{Path(getattr(main, '__file__', 'main')).stem}:{name}"
