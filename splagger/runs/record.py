"""run.json as a dataclass, with its only reader. Needs no JAX."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splagger.errors import RunError, one_line
from splagger.files.storage import json_digest
from splagger.identity import NEWER_FIELDS
from splagger.runs.axes import AXES
from splagger.zoo.recipes import COMPACT

DIGEST = "sha256"  # the field with the digest of all others


@dataclass(frozen=True)
class RunRecord:
    """The description of a run and how far it came.

    - `plan`: everything that determines the result, see `Run.describe`.
    - `arguments`: what `Run.create` needs to make the run again.
    - `provenance`: command, commit, versions, device.
    - `update`, `frames`, `seconds`: how far the run has come; frames per member, seconds of training.
    - `stopped`: maps members that diverged to the update at which they did.
    - `raced`: maps members that stopped because their rate was clearly behind to the update at which they did.
    - `failed`: why the run cannot continue, if every member diverged.
    - `curves_sha256`: the digest of curves.csv; None in records of older versions.
    """

    plan: dict[str, Any]
    arguments: dict[str, Any]
    provenance: dict[str, Any] = field(default_factory=dict)
    finished: bool = False
    compile_seconds: float | None = None
    update: int = 0
    frames: int = 0
    seconds: float = 0.0
    frames_per_second: float | None = None
    stopped: dict[str, int] = field(default_factory=dict)
    raced: dict[str, int] = field(default_factory=dict)
    failed: str | None = None
    curves_sha256: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do: the run is finished, or has failed."""
        return self.finished or self.failed is not None

    @property
    def env(self) -> str:
        return self.arguments["env"]

    @property
    def method(self) -> str:
        return self.arguments["method"]

    @property
    def name(self) -> tuple[str, str]:
        """(environment, method)."""
        return self.env, self.method

    @property
    def overrides(self) -> dict[str, Any]:
        """The settings that differ from those of the environment and the method."""
        return self.arguments.get("overrides") or {}

    @property
    def settings(self) -> tuple[str, ...]:
        """The `overrides` as figures and tables show them."""
        return in_words(self.overrides)

    @property
    def episodes(self) -> int | None:
        """Episodes per task, if recorded."""
        return self.plan.get("episodes") or self.arguments.get("episodes")

    @property
    def planned_frames(self) -> int:
        """Frames per member of the whole run: whole evaluation intervals, at least one, as `Run` rounds them."""
        asked, ppo = self.arguments.get("frames") or self.frames, self.plan.get("ppo", {})
        if not set(_LENGTHS) <= set(ppo):
            return int(asked)
        batch = ppo["steps"] * ppo["envs"]
        updates = max(1, int(asked) // batch)
        return -(-updates // ppo["eval_interval"]) * ppo["eval_interval"] * batch

    @property
    def started(self) -> str:
        """When the run began; empty if unknown."""
        return str(self.provenance.get("started", ""))

    def to_json(self) -> str:
        """Returns the text of run.json, whose field "sha256" is the digest of all others."""
        data = {"run" if k == "plan" else k: v for k, v in vars(self).items()}
        return json.dumps({DIGEST: json_digest(data)} | data, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, path: Path) -> "RunRecord":
        """Parses run.json; raises a RunError that names `path` and what is wrong with it."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _damaged(path, one_line(error)) from None
        if not isinstance(data, dict):
            raise _damaged(path, "it is not a JSON object")
        # Records of version 0.1 have no digests. Those with one of them must have both.
        digest = data.pop(DIGEST, "" if "curves_sha256" in data else None)
        if digest not in (None, json_digest(data)):
            raise _damaged(path, "its content is not what was written")
        for name, names in (("run", ()), ("arguments", ("env", "method"))):
            part = data.get(name)
            if not isinstance(part, dict) or not all(is_name(part.get(n)) for n in names):
                raise RunError(
                    f"{path} was written by another version or is damaged: it lacks {name!r}"
                    + (f" with {' and '.join(names)}" if names else "")
                )
        try:
            check_arguments(data["arguments"])
            check_plan(data["run"])
        except (ValueError, OverflowError) as error:
            raise _damaged(path, str(error)) from None
        known = {"plan": data["run"]} | {k: data[k] for k in _OPTIONAL if data.get(k) is not None}
        for name, kind in _OPTIONAL.items():
            if name in known and not _has_type(known[name], kind):
                expected = getattr(kind, "__name__", kind)
                raise _damaged(path, f"{name!r} must be of type {expected}, got {known[name]!r}")
        for name in ("stopped", "raced"):
            if not all(_has_type(update, int) for update in known.get(name, {}).values()):
                raise _damaged(path, f"{name!r} must map members to updates, got {known[name]!r}")
        return cls(**known)


_OPTIONAL: dict[str, Any] = {
    "arguments": dict,
    "provenance": dict,
    "finished": bool,
    "compile_seconds": int | float,
    "update": int,
    "frames": int,
    "seconds": int | float,
    "frames_per_second": int | float,
    "stopped": dict,
    "raced": dict,
    "failed": str,
    "curves_sha256": str,
}


# The settings that round the frames of a run to whole evaluation intervals.
_LENGTHS = ("steps", "envs", "eval_interval")
MOST_MEMBERS = 100_000  # of a recorded run; a larger grid is a damaged file


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Raises a ValueError for arguments that no run records: wrong types, or too many members."""
    for name in ("env", "method"):
        if not is_name(arguments.get(name)):
            raise ValueError(f"its {name} is not a name")
    for name, kind in (
        ("frames", int | float),
        ("episodes", int),
        ("overrides", Mapping),
        ("race", bool),
        ("snapshot_every", int | float),
    ):
        value = arguments.get(name)
        if value is not None and not _has_type(value, kind):
            raise ValueError(f"its {name} are {value!r:.80}")
    if not math.isfinite(arguments.get("frames") or 0):
        raise ValueError(f"its frames are {arguments['frames']}")
    members = math.prod(_count(arguments.get(axis.plural)) for axis in AXES)
    if members > MOST_MEMBERS:
        raise ValueError(f"it has {members:,} members")


def check_plan(plan: Mapping[str, Any]) -> None:
    """Raises a ValueError for a plan whose grid, episodes or intervals have the wrong type."""
    episodes = plan.get("episodes")
    if episodes is not None and not _has_type(episodes, int):
        raise ValueError(f"its episodes are {episodes!r:.80}")
    ppo = plan.get("ppo", {})
    if not isinstance(ppo, dict):
        raise ValueError(f"its ppo is {ppo!r:.80}")
    for name in _LENGTHS:
        if name in ppo and not (_has_type(ppo[name], int) and 0 < ppo[name] < 2**31):
            raise ValueError(f"its ppo.{name} is {ppo[name]!r:.80}")
    method = plan.get("method", {})
    if not isinstance(method, dict):
        raise ValueError(f"its method is {method!r:.80}")
    for axis in AXES:
        try:
            if "ppo" in plan and "method" in plan:
                axis.default(plan)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise ValueError(f"it has no default of {axis.plural}") from None
        values = plan.get(axis.plural, [])
        if not isinstance(values, list) or not all(_has_type(v, int | float) for v in values):
            raise ValueError(f"its {axis.plural} are {values!r:.80}")


COMPACT_NETWORK = "compact network"  # stands for the settings of `COMPACT`


def in_words(overrides: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns settings as figures and tables show them; the arguments of an environment one by one.

    >>> in_words({"env.kwargs": '{"goal": 3}', "network.hidden": [64, 32]})
    ('goal=3', 'network.hidden=64,32')
    >>> in_words(COMPACT | {"ppo.clip": 0.1, "network.hidden": [64, 64]})
    ('network.hidden=64,64', 'ppo.clip=0.1', 'compact network')
    """
    found: list[str] = []
    given = COMPACT.keys() & overrides.keys()
    alike = [name for name in given if as_text(overrides[name]) == as_text(COMPACT[name])]
    is_compact = given == COMPACT.keys() and 2 * len(alike) > len(COMPACT)
    for name, value in overrides.items():
        if is_compact and name in alike:
            continue
        pairs = _arguments(value) if name == "env.kwargs" else {name: value}
        found += [f"{key}={as_text(one)}" for key, one in pairs.items()]
    found += [COMPACT_NETWORK] * is_compact
    return tuple(word if word.isprintable() else repr(word) for word in found)


def setting_of(plan: Mapping[str, Any], name: str) -> str | None:
    """Returns a setting of a described run as tables show it; None if it has none of that name.

    >>> setting_of({"ppo": {"clip": 0.05}}, "ppo.clip"), setting_of({"ppo": {}}, "ppo.update_noise")
    ('0.05', 'stored')
    """
    group, *path = name.split(".")
    if not path:  # an argument of a Gymnasium environment
        return None
    value = plan.get("environment" if group == "env" else group)
    for part in path:
        if not isinstance(value, Mapping):
            return None
        if part not in value and part not in NEWER_FIELDS:
            return None
        value = value.get(part, NEWER_FIELDS.get(part))
    return None if isinstance(value, Mapping) else as_text(value)


def _arguments(text: Any) -> dict[str, Any]:
    """Returns the arguments of an environment, which are recorded as JSON."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return {"env.kwargs": text}


def as_text(value: Any) -> str:
    """Returns a setting in the syntax of --set.

    >>> as_text((32, 8)), as_text(True), as_text(None)
    ('32,8', 'true', 'none')
    """
    if isinstance(value, list | tuple):
        return ",".join(map(as_text, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _count(values: Any) -> int:
    """Returns the number of values on one axis; a number stands for as many seeds."""
    if isinstance(values, list | tuple):
        return len(values)
    return int(values) if isinstance(values, int | float) and 1 <= values < math.inf else 1


def is_name(value: Any) -> bool:
    """Whether a value is text that terminals and figures can show."""
    return isinstance(value, str) and value.isprintable()


def _has_type(value: Any, kind: Any) -> bool:
    """Whether JSON data has a type. In Python a bool is also an int; here it is not."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _damaged(path: Path, reason: str) -> RunError:
    return RunError(f"{path} is damaged ({reason}); --force starts over")
