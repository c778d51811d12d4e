"""Runs and members of runs from what a file says about them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from splagger.agents.trust import named_code, untrusted
from splagger.errors import RunError, UserError, one_line
from splagger.identity import agrees, differences
from splagger.runs.record import check_arguments
from splagger.runs.run import Number, Point, Run
from splagger.tables import listed, lookup


def recreate(
    arguments: dict[str, Any],
    plan: dict[str, Any],
    path: Path,
    env: Any = None,
    method: Any = None,
    trust: bool = False,
) -> Run:
    """Makes a recorded run again; `env` and `method` replace those in `arguments`.

    Raises a RunError if that would import or call something that is neither ours nor passed, unless `trust`.
    """
    code = [] if trust else named_code(arguments, env, method)
    if code:
        raise RunError(untrusted(path, code))
    given = {k: v for k, v in {"env": env, "method": method}.items() if v is not None}
    try:
        check_arguments(arguments)
        run = Run.create(**(arguments | given))
    except (UserError, TypeError, ValueError, OverflowError) as error:
        raise RunError(
            f"{path} describes a run that cannot be made here: {one_line(error)}; pass a custom environment or method "
            "to splagger.load(…, env=…, method=…)"
        ) from error
    if not agrees(run.describe(), plan):
        differ = listed(differences(run.describe(), plan))
        raise RunError(
            f"{path} was made with other definitions of {run.row.name!r} or {run.method.name!r} than those here: "
            f"{differ}; restore them, or pass env=… or method=…"
        )
    named = arguments["method"]  # kept for the next file, also if the method was passed
    return replace(run, method_path=named) if ":" in named else run


def matching(points: list[Point], wanted: Mapping[str, Number | None], path: Path) -> list[Point]:
    """Those of `points` that have every value in `wanted`."""
    wanted = {name: value for name, value in wanted.items() if value is not None}
    for name in wanted:
        lookup(dict.fromkeys(Point._fields), name, "setting of an agent")
    found = [p for p in points if all(getattr(p, k) == v for k, v in wanted.items())]
    if not found:
        given = ", ".join(f"{name} {value}" for name, value in wanted.items())
        values = {name: sorted({getattr(point, name) for point in points}) for name in wanted}
        there = "; ".join(f"{name}: {values}" for name, values in values.items())
        raise RunError(f"{path} has no agent with {given}; it has {there}")
    return found
