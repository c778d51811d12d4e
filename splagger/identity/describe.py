"""Settings as plain data, and the digest that identifies an experiment."""

import dataclasses
import functools as ft
import json
import typing
from collections.abc import Iterator
from typing import Any

from splagger.errors import SettingError
from splagger.files.storage import sha256
from splagger.identity.code import classes_of, function_of, is_from_this_package
from splagger.identity.content import Content, attributes_of, code_of
from splagger.ranges import type_hints

# Plans lack newer fields at their defaults, so that old digests stay valid.
NEWER_FIELDS = {"update_noise": "stored", "image_channels": [16, 32]}
NEWER_PARTS = ("environment", "task_code", "arrays")  # of bridges; records from before lack them
DESCRIBED_ELSEWHERE = ("env", "episodes")  # of a meta-environment
BUILDER = "encoder"  # part of a description, beside the method that names it
OWN_FIELDS = "own fields"  # of a subclass of ours
_MISSING = object()


def plain(value: Any) -> Any:
    """Returns settings as JSON data, with all their fields; equal settings give equal data.

    A bridge to another library, and an object that is no dataclass, describes itself by a method `describe`. For
    dataclasses of others, a method of that name may mean anything, and is not called. Bridges may name objects of the
    library, which are described by their content.
    """
    is_dataclass = dataclasses.is_dataclass(value) and not isinstance(value, type)
    own = function_of(getattr(type(value), "describe", None))
    if own and is_from_this_package(own):
        content = Content()
        try:
            parts = {name: content.of(part) for name, part in own(value).items()}
        except RecursionError:
            raise SettingError(
                f"an object in {type(value).__name__} cannot be described, because it is nested too deeply"
            ) from None
        return parts | kind_of_others(value)
    if own and not is_dataclass:
        return own(value)
    if is_dataclass:
        floats = _float_fields(type(value))
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        fields = {k: float(v) if k in floats and type(v) is int else v for k, v in fields.items()}
        fields = {k: v for k, v in fields.items() if (k, v) not in NEWER_FIELDS.items()}
        code = code_of(type(value))
        fields = {f"field {k}" if k == "kind" or k in code else k: v for k, v in fields.items()}
        return {"kind": type(value).__name__, **code, **fields, **_without_fields(value)}
    names = getattr(value, "_fields", None)
    if isinstance(value, tuple) and names and not is_from_this_package(type(value)):
        parts = {name: plain(part) for name, part in zip(names, value, strict=True)}
        return {"kind": type(value).__name__, **code_of(type(value)), "items": parts}
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def kind_of_others(value: Any) -> dict[str, Any]:
    """Returns the name and the code of an object's class if it is a subclass of one of ours, and its own fields."""
    kind = type(value)
    if is_from_this_package(kind):
        return {}
    ours = next(base for base in kind.__mro__ if is_from_this_package(base))
    known = {*DESCRIBED_ELSEWHERE, *(f.name for f in dataclasses.fields(ours))}
    fields = {
        f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.name not in known
    }
    own = {OWN_FIELDS: Content().of(fields)} if fields else {}
    return {"kind": kind.__name__, **code_of(kind), **own}


def builder(build: Any) -> dict[str, Any]:
    """Returns the description of a function of others that builds an encoder, with the classes that it names; else nothing."""
    if is_from_this_package(build):
        return {}
    return {BUILDER: Content().of([build, *classes_of(function_of(build))])}


def _without_fields(value: Any) -> dict[str, Any]:
    """Returns what a dataclass made of arguments that are not its fields, `InitVar`s; nothing if it has none."""
    kinds = {f._field_type for f in vars(type(value)).get("__dataclass_fields__", {}).values()}
    if dataclasses._FIELD_INITVAR not in kinds:  # pyright: ignore[reportAttributeAccessIssue]
        return {}
    names = {f.name for f in dataclasses.fields(value)}
    made = {k: v for k, v in attributes_of(value).items() if k not in names}
    return {"made of arguments": Content().of(made)} if made else {}


def agrees(found: Any, recorded: Any) -> bool:
    """Returns whether a run is the recorded one, whose record may be from before bridges described objects."""
    ours, theirs = found.get("environment"), recorded.get("environment")
    if isinstance(ours, dict) and isinstance(theirs, dict):
        ours = {k: v for k, v in ours.items() if k not in NEWER_PARTS or k in theirs}
        found = found | {"environment": ours}
    return digest_of(_as_recorded(found, recorded)) == digest_of(recorded)


def _as_recorded(found: Any, recorded: Any) -> Any:
    """A description without what was not yet described at the time of a record: variables around classes, own fields, encoders."""
    if not (isinstance(found, dict) and isinstance(recorded, dict)):
        return found
    kept = {
        name: part
        for name, part in found.items()
        if name in recorded or name not in ("around", OWN_FIELDS, BUILDER)
    }
    return {name: _as_recorded(part, recorded.get(name)) for name, part in kept.items()}


def differences(found: Any, recorded: Any, path: str = "") -> Iterator[str]:
    """Yields what differs between two descriptions, in words.

    >>> list(differences({"aggregator": {"beta": 4.0}}, {"aggregator": {"beta": 2.0}}))
    ['aggregator.beta was 2.0 and is 4.0']
    """
    if not path:  # as if it had been recorded, too
        found = json.loads(json.dumps(found))
    if not (isinstance(found, dict) and isinstance(recorded, dict)):
        if found != recorded:
            yield f"{path} was {_excerpt(recorded, found)} and is {_excerpt(found, recorded)}"
        return
    for name in {**recorded, **found}:
        ours, theirs = found.get(name, _MISSING), recorded.get(name, _MISSING)
        if name == "code" and ours != theirs:
            yield f"the code of {found.get('kind') or recorded.get('kind') or path} has changed"
        else:
            yield from differences(ours, theirs, f"{path}.{name}".removeprefix("."))


def _excerpt(value: Any, other: Any, length: int = 60) -> str:
    """A value as text that begins shortly before the first difference from another one."""
    if value is _MISSING:
        return "missing"
    text = repr(value)
    pairs = enumerate(zip(text, repr(other), strict=False))
    start = max(0, next((i for i, (a, b) in pairs if a != b), 0) - length // 3)
    return "…" * (start > 0) + text[start : start + length]


def digest_of(description: dict[str, Any]) -> str:
    """Returns ten hexadecimal digits; equal descriptions have equal digests."""
    return sha256(json.dumps(description, sort_keys=True))[:10]


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
