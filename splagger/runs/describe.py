"""Settings as plain data, and the digest that identifies an experiment."""

import dataclasses
import hashlib
import inspect
import json
from typing import Any, Protocol, runtime_checkable

# Newer fields are left out of the description at their defaults, so that old digests stay valid.
NEWER_FIELDS = {"update_noise": "stored", "image_channels": [16, 32]}


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
    """A digest of the source of a custom class: editing the class makes a different experiment."""
    if is_from_this_package(kind):
        return {}
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):  # a class typed at a prompt has no source
        return {}
    return {"code": hashlib.sha256(source.encode()).hexdigest()[:10]}
