"""The code that a file names: what would be imported and called to make its run again.

Files are data. Loading one runs nothing that it names unless the caller allows it, with `trust=True` or by passing the
environment and the method. Environments and methods of this package are found by name and need no permission.
"""

import functools as ft
import json
import re
import typing
from collections.abc import Mapping
from typing import Any

from splagger.bridges import resolve
from splagger.bridges.gym.creation import is_function
from splagger.bridges.gym.task_sampling import TASK_SAMPLERS
from splagger.methods import METHODS
from splagger.ranges import setting_types
from splagger.registry import ENVS

ALLOW = (
    "if you trust its author, pass trust=True (--trust on the command line), or env=… and method=…"
)


def untrusted(path: Any, code: list[str]) -> str:
    """Returns the line that names what would run and how to allow it."""
    return f"{path} needs code from outside of splagger: it would {', and '.join(code)}; {ALLOW}"


def named_code(arguments: Mapping[str, Any], env: Any = None, method: Any = None) -> list[str]:
    """Returns what `Run.create` would do with these arguments that neither we nor the caller chose, as phrases.

    - `arguments`: those in a file; everything in them is data of a stranger.
    - `env`, `method`: what the caller passed instead of those in `arguments`.

    >>> named_code({"env": "t-ls", "method": "splagger", "overrides": {"env.length": "5"}})
    []
    >>> named_code({"env": "gym:os:system", "method": "rnn", "overrides": {"env.kwargs": '{"command": "ls"}'}})
    ['import \\'os\\' and call \\'os:system\\' with \\'{"command": "ls"}\\'']
    """
    overrides = arguments.get("overrides") or {}
    overrides = overrides if isinstance(overrides, Mapping) else {}
    name = arguments.get("env")
    created = [] if env is not None else _environment(name, overrides.get("env.kwargs"))
    if created:  # its arguments are named already
        overrides = {k: v for k, v in overrides.items() if k != "env.kwargs"}
    settings = _settings(name if env is None else env, overrides)
    return [*created, *settings, *_method(arguments.get("method"), method)]


def _environment(name: Any, kwargs: Any) -> list[str]:
    if not isinstance(name, str) or ":" not in name:
        return []
    source, _, rest = name.partition(":")
    module, colon, inner = rest.partition(":")
    given = f" with {_quoted(kwargs)}" if kwargs else ""
    if source == "jax" or (source == "gym" and is_function(rest)):
        return [f"import {_quoted(module)} and call {_quoted(rest)}{given}"]
    if source == "xland" and "/" in rest:
        name, _, rulesets = rest.partition("/")
        unpickled = f"unpickle {_quoted(rulesets)}, which can run any code"
        return [f"create the XLand-MiniGrid environment {_quoted(name)} and {unpickled}"]
    library = {"gymnax": "gymnax", "xland": "XLand-MiniGrid"}.get(source, "Gymnasium")
    first = f"import {_quoted(module)} and " if colon else ""
    return [f"{first}create the {library} environment {_quoted(inner or rest)}{given}"]


def _method(name: Any, given: Any) -> list[str]:
    if given is not None or not isinstance(name, str) or name in METHODS or ":" not in name:
        return []
    return [f"import {_quoted(name.partition(':')[0])} for the method {_quoted(name)}"]


def _settings(env: Any, overrides: Mapping[str, Any]) -> list[str]:
    """The settings of the environment that are not numbers: import paths, arguments, folders.

    A setting that has this value already, in our environment or in the caller's, changes nothing.
    """
    names = [name for name in overrides if isinstance(name, str) and name.startswith("env.")]
    is_foreign = isinstance(env, str) and env not in ENVS
    row_env = None if is_foreign or not names else resolve(env).env
    found = []
    for name in names:
        value, field = overrides[name], name.removeprefix("env.")
        if not _is_harmless(row_env, field, value):
            found.append(f"set {_quoted(name)[1:-1]} to {_quoted(value)}")
    return found


def _is_harmless(env: Any, field: str, value: Any) -> bool:
    if value is None or isinstance(value, int | float) or _NUMBER.fullmatch(str(value)):
        return True
    if field == "task" and value in ("auto", *TASK_SAMPLERS):
        return True
    if env is None:
        return False
    *parts, field = field.split(".")
    owner = ft.reduce(lambda owner, part: getattr(owner, part, None), parts, env)
    if field not in (types := setting_types(owner)):
        return True  # `Run.create` refuses it by name
    is_known = types[field] is not type(None)  # which is the type of a value, not that of the field
    return (is_known and _holds_numbers(types[field])) or _same(value, getattr(owner, field, None))


def _holds_numbers(kind: Any) -> bool:
    """Returns whether a type is that of a number, or of a tuple of numbers.

    >>> _holds_numbers(tuple[int, ...]), _holds_numbers(float | None), _holds_numbers(str | None)
    (True, True, False)
    """
    parts = typing.get_args(kind)
    return all(map(_holds_numbers, parts)) if parts else kind in _NUMBERS


_NUMBERS = (bool, int, float, type(None), ...)
_NUMBER = re.compile(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?")  # as text, which --set records


def _same(value: Any, present: Any) -> bool:
    try:
        return value == present or json.loads(value) == json.loads(present)
    except (TypeError, ValueError, RecursionError):
        return False


def _quoted(value: Any) -> str:
    """Text of a stranger in one short line, without control characters."""
    text = repr(value) if isinstance(value, str) else repr(str(value))
    return text if len(text) <= 200 else f"{text[:200]}…'"
