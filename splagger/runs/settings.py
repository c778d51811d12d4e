"""Settings by name, "group.field". Values are converted to the type of the field."""

import contextlib
import dataclasses
import functools as ft
import itertools
import numbers
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from splagger.bridges.gym.gym_env import as_json
from splagger.errors import SettingError, kind_of
from splagger.methods import Method
from splagger.ranges import check, read_number, setting_types
from splagger.registry import EnvRow
from splagger.tables import lookup

# Names of other libraries, and what they are called here.
INSTEAD = {
    **dict.fromkeys(("lr", "learning_rate"), "learning rates are --rates (rates= in Python)"),
    **dict.fromkeys(("gamma", "discount_factor"), "it is called ppo.discount"),
    **dict.fromkeys(("lam", "lambda", "gae_lambda"), "it is called ppo.gae_decay"),
    **dict.fromkeys(("num_envs", "n_envs"), "it is called ppo.envs"),
    **dict.fromkeys(("num_steps", "n_steps", "rollout_length"), "it is called ppo.steps"),
    **dict.fromkeys(("num_epochs", "n_epochs", "update_epochs"), "it is called ppo.epochs"),
    **dict.fromkeys(("num_minibatches", "batch_size"), "ppo.minibatches is their number"),
    **dict.fromkeys(("clip_eps", "clip_range", "clip_coef"), "it is called ppo.clip"),
    **dict.fromkeys(("ent_coef", "entropy_coef"), "it is called ppo.entropy"),
    **dict.fromkeys(("vf_coef", "value_coef"), "it is called ppo.value_weight"),
    "hidden_size": "the memory's neurons are method.width, the policy's layers network.hidden",
}


def override(row: EnvRow, method: Method, overrides: Mapping[str, Any]) -> tuple[EnvRow, Method]:
    """Returns the row and the method with every "group.field" in `overrides` replaced."""
    groups: dict[str, Any] = {
        "ppo": row.ppo,
        "network": row.network,
        "env": row.env,
        "method": method,
    }
    changes: dict[str, dict[str, Any]] = {}
    for path, value in overrides.items():
        group, _, name = path.partition(".")
        _check_group(groups, group, name)
        changes.setdefault(group, {})[name] = value
    if "name" in changes.get("method", {}):
        raise SettingError("method.name cannot be changed; pass another method instead")
    if "env" in changes and not dataclasses.is_dataclass(row.env):
        raise SettingError(
            f"{row.name} is not a dataclass, so its settings cannot be changed by name; pass another environment"
        )
    new = groups | {group: _replaced(groups[group], group, c) for group, c in changes.items()}
    row = dataclasses.replace(row, ppo=new["ppo"], network=new["network"])
    return row.with_meta(env=new["env"]), new["method"]


def _check_group(groups: Mapping[str, Any], group: str, name: str) -> None:
    """Refuses names without a group of settings; the error says which settings they may stand for."""
    if group in groups and not name:
        raise SettingError(f"settings are written {group}.NAME, got {group!r} alone")
    having = [g for g, owner in groups.items() if not name and group in setting_types(owner)]
    if having:
        raise SettingError(f"no setting {group!r}; did you mean {having[0]}.{group}?")
    lookup(groups, group, "setting group")


def _replaced(owner: Any, path: str, changes: Mapping[str, Any]) -> Any:
    """Returns a copy of a dataclass with every "field" and "part.field" in `changes` replaced; `path` is its own name.

    All changes of one object take effect at once, because some values are valid only together.
    """
    new: dict[str, Any] = {}
    inside: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        field, _, inner = name.partition(".")
        if field in getattr(owner, "IDENTITY", ()):
            raise SettingError(f"{path}.{name} cannot be changed; pass another environment instead")
        if inner and dataclasses.is_dataclass(getattr(owner, field, None)):
            inside.setdefault(field, {})[inner] = value
        else:
            if name in INSTEAD and name not in setting_types(owner):
                raise SettingError(f"no {path} setting {name!r}; {INSTEAD[name]}")
            kind = lookup(setting_types(owner), name, f"{path} setting")
            new[name] = _convert(f"{path}.{name}", value, kind)
            check(f"{path}.{name}", new[name], kind)
    parts = {
        field: _replaced(getattr(owner, field), f"{path}.{field}", inner)
        for field, inner in inside.items()
    }
    return dataclasses.replace(owner, **parts | new)


def value_of(path: str, row: EnvRow, method: Method) -> Any:
    """Returns the value of a setting; None if an object lacks it."""
    group, *names = path.split(".")
    owner = {"env": row.env, "method": method}.get(group) or getattr(row, group)
    return ft.reduce(lambda part, name: getattr(part, name, None), names, owner)


def changed(
    settings: Mapping[str, Any], before: tuple[EnvRow, Method], after: tuple[EnvRow, Method]
) -> dict[str, Any]:
    """Returns the settings whose value differs between two pairs of a row and a method."""

    def differs(path):
        old, new = value_of(path, *before), value_of(path, *after)
        # An array of a custom environment has no such value.
        return type(old) is not type(new) or old != new

    return {path: given for path, given in settings.items() if differs(path)}


def names_of_settings(row: EnvRow, method: Method) -> Iterator[str]:
    """Yields the names of all settings that a text can give."""
    groups = {"ppo": row.ppo, "network": row.network, "env": row.env, "method": method}
    for group, owner in groups.items():
        if dataclasses.is_dataclass(owner):
            yield from _names_inside(group, owner)


def _names_inside(path: str, owner: Any) -> Iterator[str]:
    for name, kind in setting_types(owner).items():
        if (path, name) == ("method", "name") or name in getattr(owner, "IDENTITY", ()):
            continue
        value = getattr(owner, name)
        if dataclasses.is_dataclass(value):
            yield from _names_inside(f"{path}.{name}", value)
        elif _is_plain(kind) or typing.get_origin(kind) in (types.UnionType, typing.Union):
            yield f"{path}.{name}"


def without_numpy(value: Any) -> Any:
    """Returns the value with numbers and lists of Python instead of those of NumPy and JAX.

    >>> import numpy as np
    >>> without_numpy({"ppo.envs": np.int64(2), "network.hidden": np.array([8, 4])})
    {'ppo.envs': 2, 'network.hidden': [8, 4]}
    """
    if isinstance(value, Mapping):
        return {name: without_numpy(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(without_numpy, value))
    return value.tolist() if hasattr(value, "tolist") else value


def check_mapping(name: str, value: Any, example: str) -> None:
    """Raises a SettingError unless the value is a dictionary."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise SettingError(f"{name} must be like {example}, got {value!r:.80}")


def _convert(path: str, value: Any, kind: Any) -> Any:
    """Converts a value or a string to the field's type; in a string, commas separate several values."""
    if path == "env.kwargs" and isinstance(value, Mapping):
        value = as_json(value)
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _convert(path, value, options[0])
    if origin in (types.UnionType, typing.Union):
        empty = value is None or (isinstance(value, str) and value.lower() == "none")
        if empty and type(None) in options:
            return None
        return _first(path, value, [option for option in options if option is not type(None)])
    if origin is tuple and options[-1:] == (...,):
        return tuple(_convert(path, item, options[0]) for item in _items(path, value))
    if origin is tuple:
        return tuple(_each(path, value, options))
    if hasattr(kind, "_fields"):  # a named tuple
        hints = typing.get_type_hints(kind)
        return kind(*_each(path, value, [hints[field] for field in kind._fields]))
    if kind not in PLAIN and not isinstance(value, str):
        value = tuple(value) if isinstance(value, list) else value
        parts = value if isinstance(value, tuple) else (value,)
        if not all(part is None or isinstance(part, numbers.Real | str) for part in parts):
            whole = {"method": "a splagger.Method", "env": "an environment"}
            other = whole.get(path.partition(".")[0], "other settings")
            raise SettingError(
                f"{path} must be plain numbers or texts here, got {kind_of(value)}; pass {other} that has it instead"
            )
        return value
    try:
        return PLAIN[kind](value)
    except (KeyError, ValueError, TypeError, OverflowError):
        name = getattr(kind, "__name__", kind)
        several = isinstance(value, str) and "," in value and kind is not str
        hint = f"; several values are for sweeps: --vary {path}=A {path}=B" * several
        raise SettingError(f"{path} must be of type {name}, got {value!r}{hint}") from None


def _first(path: str, value: Any, kinds: Sequence[Any]) -> Any:
    """Converts a value to the first of several types that takes it; others than plain ones come last."""
    known = [kind for kind in kinds if _is_plain(kind)]
    *others, last = known if _is_plain(kinds[0]) else [*known, kinds[0]]
    for kind in others:
        with contextlib.suppress(SettingError):
            return _convert(path, value, kind)
    return _convert(path, value, last)


def _is_plain(kind: Any) -> bool:
    """Whether texts can be converted to a type."""
    if typing.get_origin(kind) is typing.Annotated:
        return _is_plain(typing.get_args(kind)[0])
    return kind in PLAIN or typing.get_origin(kind) is tuple or hasattr(kind, "_fields")


def _each(path: str, value: Any, kinds: Sequence[Any]) -> list[Any]:
    """Converts each of several values to the type at its place."""
    items = _items(path, value)
    if len(items) != len(kinds):
        raise SettingError(f"{path} takes {len(kinds)} values, got {len(items)}: {value!r}")
    return [_convert(path, item, kind) for item, kind in zip(items, kinds, strict=True)]


def _items(path: str, value: Any) -> list[Any]:
    if isinstance(value, str):
        return [item for item in value.split(",") if item]
    if not isinstance(value, Sequence):
        raise SettingError(f"{path} takes several values, got {value!r}")
    return list(value)


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return read_number(value) if isinstance(value, str) else float(value)


def _int(value: Any) -> int:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    number = _float(value)
    if number != int(number):
        raise ValueError
    return int(number)


def _bool(value: Any) -> bool:
    return {True: True, False: False, "true": True, "false": False}[
        value.lower() if isinstance(value, str) else value
    ]


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


PLAIN: dict[Any, Any] = {bool: _bool, int: _int, float: _float, str: _str}


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """Converts the values of --set to a dictionary."""
    pairs = [_assignment(text) for text in texts]
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SettingError(f"--set gives {', '.join(twice)} twice")
    return dict(pairs)


def alternatives(texts: Sequence[str]) -> dict[str, list[str]]:
    """Converts the values of --vary to the list of values per name.

    >>> alternatives(["method.skip=0", "method.skip=1", "ppo.epochs=4"])
    {'method.skip': ['0', '1'], 'ppo.epochs': ['4']}
    """
    found: dict[str, list[str]] = {}
    for name, value in (_assignment(text, "--vary") for text in texts):
        found.setdefault(name, []).append(value)
    return found


def combinations(vary: Mapping[str, Any], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns one dictionary per combination of values; each name must have a list of values and no other setting.

    >>> combinations({"method.skip": [0, 1], "ppo.epochs": [4]}, settings={})
    [{'method.skip': 0, 'ppo.epochs': 4}, {'method.skip': 1, 'ppo.epochs': 4}]
    """
    check_mapping("vary", vary, '{"method.skip": [0, 0.5, 1]}')
    check_mapping("settings", settings, '{"ppo.steps": 80}')
    plain = without_numpy(dict(vary))
    for name, values in plain.items():
        if name in settings:
            raise SettingError(
                f"{name} has one value in the settings and others to vary; give only one of them"
            )
        if not isinstance(values, list | tuple | range) or not values:
            raise SettingError(f"vary takes a list of values for {name}, got {values!r:.80}")
    return [dict(zip(plain, chosen, strict=True)) for chosen in itertools.product(*plain.values())]


def _assignment(text: str, option: str = "--set") -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingError(f"{option} takes NAME=VALUE, got {text!r}")
    return name, value


def env_settings(texts: Sequence[str]) -> dict[str, str]:
    """Converts the values of --set to settings of the environment without their prefix; others cannot change.

    >>> env_settings(["env.laps=32"])
    {'laps': '32'}
    """
    found = assignments(texts)
    others = [name for name in found if not name.startswith("env.")]
    if others:
        raise SettingError(
            f"a trained agent can play in another environment, but nothing else of it can change: --set takes "
            f"env.NAME=VALUE here, got {', '.join(others)}"
        )
    return {name.removeprefix("env."): value for name, value in found.items()}
