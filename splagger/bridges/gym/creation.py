"""Creates Gymnasium environments from ids and functions, and says what is missing if that fails."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from splagger.bridges.importing import add_working_directory, import_object
from splagger.errors import FOREIGN_ERRORS, SettingError, UserError, cause_of, one_line

Source = str | Callable[..., Any]  # an id, the import path of a function, or the function itself


class Package(NamedTuple):
    """A package that registers ids when it is imported; `codes` are those of its images, see `Image`."""

    name: str
    codes: int = 0


# beginning of an id → its package; ids of other packages are written "package:Id-v0"
PACKAGES = {
    "MiniGrid-": Package("minigrid", codes=11),
    "BabyAI-": Package("minigrid", codes=11),
    "ALE/": Package("ale_py"),
    "popgym-": Package("popgym"),
}


def create(name: str, source: Source, arguments: Mapping[str, Any], render: bool) -> Any:
    """Creates the Gymnasium environment that errors call `name`.

    - `arguments`: the keyword arguments of `source`.
    - `render`: whether the environment will be drawn.
    """
    import gymnasium

    try:
        if callable(source) or is_function(source):
            env = _call(
                import_object(source, name) if isinstance(source, str) else source,
                arguments,
                render,
            )
        else:
            env = _by_id(source, arguments, render)
    except UserError:
        raise
    except FOREIGN_ERRORS as error:
        drawn = way_out = ""
        if render:
            drawn = " with render_mode='rgb_array', which pictures need"
            way_out = "; splagger evaluate needs no pictures, and splagger inspect has --no-pictures (draw=False in Python)"
        raise SettingError(
            f"{name}: the environment cannot be created{drawn} ({_cause(error)}){way_out}"
        ) from error
    if not isinstance(env, gymnasium.Env):
        raise SettingError(f"{name} must return a gymnasium.Env, got {type(env).__name__}")
    return env


def _by_id(source: str, arguments: Mapping[str, Any], render: bool) -> Any:
    import gymnasium

    add_working_directory()
    mode = {"render_mode": "rgb_array"} if render else {}
    return gymnasium.make(registered(source), **{"disable_env_checker": True, **arguments, **mode})


def _call(function: Callable[..., Any], arguments: Mapping[str, Any], render: bool) -> Any:
    parameters = inspect.signature(function).parameters
    any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    takes_mode = any_name or "render_mode" in parameters
    mode = {"render_mode": "rgb_array"} if render and takes_mode else {}
    return function(**{**arguments, **mode})


def _cause(error: BaseException) -> str:
    """Returns an error in one line, with a command that installs a missing package that we know."""
    import gymnasium

    # Gymnasium chains an error of its own to that of an import, with advice for the package's author.
    cause = error.__cause__ if isinstance(error.__cause__, ModuleNotFoundError) else error
    if cause is not error:
        text = one_line(cause)
    elif isinstance(error, gymnasium.error.Error):  # whose messages need no place in its code
        text = f"{type(error).__name__}: {one_line(error)}"
    else:
        text = cause_of(error)
    known = {package.name for package in PACKAGES.values()} | {"pygame"}
    missing = str(getattr(cause, "name", None)).partition(".")[0]
    install = f"; install it with: pip install {missing.replace('_', '-')}"
    return text + install if missing in known else text


def registered(name: str) -> str:
    """Returns an id that Gymnasium can create: an unknown one gets the package that registers such ids."""
    import gymnasium

    package = package_of(name) if ":" not in name else None
    return f"{package.name}:{name}" if package and name not in gymnasium.registry else name


def package_of(name: str) -> Package | None:
    """Returns the package of an id, with or without "package:" in front of it; None if it is not in `PACKAGES`."""
    name = name.rpartition(":")[2]
    return next((found for start, found in PACKAGES.items() if name.startswith(start)), None)


def is_function(source: str) -> bool:
    """Returns whether a string is package.module:function; environment ids are not Python names."""
    return source.partition(":")[2].replace(".", "").isidentifier()
