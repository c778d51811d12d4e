"""Methods side by side on anybody's task, with the statistics of the paper's rerun."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from splagger.figures.evidence import COVERED, GRIDS, Chosen, Evidence, Recorded, unbiased, whole
from splagger.figures.members import Members, Settings, pool
from splagger.figures.stats import (
    at_the_end,
    estimate,
    improvement,
    interquartile_mean,
    over_training,
)
from splagger.recorded import RunError

if TYPE_CHECKING:
    import pandas

USUAL_REFERENCE = "splagger"


class Contestant(NamedTuple):
    """A method with its settings, on a task."""

    task: str  # the environment with all that determines what happens in it
    env: str
    method: str
    settings: tuple[str, ...]  # all that is not usual
    chosen: Chosen

    @property
    def scores(self) -> np.ndarray:
        return over_training(self.chosen.curves)


def compare(*roots: str | Path, reference: str | None = None) -> "pandas.DataFrame":
    """One line for each method (and other settings) of the run folders below `roots`, the best first.

    `training` and `end` are interquartile means of the return over all of training and over its last tenth, with
    95% bootstrap intervals, at the best rate, on seeds that the rate was not chosen on where there are some
    (`source`). `settings` are those that not all have. `chance` is the probability that a seed of it earns more over training than one of `reference`;
    it is empty where the runs differ in length or in their task.
    """
    import pandas

    runs = Evidence.read(*roots).runs
    if not runs:
        raise RunError(f"no run folder in {', '.join(map(str, roots)) or 'nothing'}")
    contestants = sorted(_contestants(runs), key=lambda c: (c.env, c.task, -c.scores.mean()))
    if not contestants:
        raise RunError("none of these runs has got to its first evaluation yet")
    methods = {c.method for c in contestants}
    if reference is not None and reference not in methods:
        raise RunError(f"no run of {reference!r}; there are {', '.join(sorted(methods))}")
    rows = []
    for one in contestants:
        rivals = [c for c in contestants if c.task == one.task]
        rows.append(_row(one, rivals, _reference(one, rivals, reference)))
    return pandas.DataFrame(rows)


def _contestants(runs: list[Recorded]) -> Iterator[Contestant]:
    """Runs that differ by their grid alone are one contestant; each swept number makes one of its own."""
    groups: dict[str, list[Recorded]] = {}
    for run in runs:
        groups.setdefault(_experiment(run), []).append(run)
    for group in groups.values():
        swept: dict[Settings, list[tuple[Recorded, Members]]] = {}
        for run in group:
            for settings, members in run.members.items():
                swept.setdefault(settings, []).append((run, members))
        differ = [k for k in Settings._fields if len({getattr(s, k) for s in swept}) > 1]
        for settings, found in swept.items():
            words = [f"{k.replace('_', ' ')} {getattr(settings, k):g}" for k in differ]
            chosen = unbiased(pool([members for _, members in whole(found)]))
            given = group[0].record["arguments"].get("overrides", {})
            words = [*(f"{name}={value}" for name, value in given.items()), *words]
            yield Contestant(_task(group[0]), *group[0].name, tuple(words), chosen)


def _experiment(run: Recorded) -> str:
    """All that two runs of one experiment have in common."""
    return _text({k: v for k, v in run.record["run"].items() if k not in GRIDS | {"updates"}})


def _task(run: Recorded) -> str:
    return _text([run.record["run"].get(k) for k in ("env", "environment", "episodes")])


def _text(data: Any) -> str:
    return json.dumps(data, sort_keys=True)


def _reference(one: Contestant, rivals: list[Contestant], name: str | None) -> Contestant:
    """The one of that name; SplAgger, or the best, if nobody was named."""
    named = [c for c in rivals if c.method == (name or USUAL_REFERENCE)]
    if named or name is None:
        return (named or rivals)[0]
    return one


def _row(one: Contestant, rivals: list[Contestant], reference: Contestant) -> dict[str, Any]:
    common = set.intersection(*(set(c.settings) for c in rivals)) if len(rivals) > 1 else set()
    training = estimate(interquartile_mean, one.scores)
    end = estimate(interquartile_mean, at_the_end(one.chosen.curves))
    return {
        "env": one.env,
        "method": one.method,
        "settings": ", ".join(word for word in one.settings if word not in common),
        "frames": int(one.chosen.frames[-1]),
        "rate": one.chosen.rate,
        "seeds": len(one.chosen.curves),
        "source": one.chosen.source,
        "training": training.value,
        "training_low": training.low,
        "training_high": training.high,
        "end": end.value,
        "end_low": end.low,
        "end_high": end.high,
        "reference": reference.method,
        "chance": _chance(one, reference),
    }


def _chance(one: Contestant, other: Contestant) -> float | None:
    lengths = sorted(float(c.chosen.frames[-1]) for c in (one, other))
    if one is other or lengths[0] < COVERED * lengths[1]:
        return None
    scores = [
        over_training(c.chosen.curves[:, c.chosen.frames <= lengths[0]]) for c in (one, other)
    ]
    return float(improvement(*scores))


HEAD = ("method", "settings", "frames", "rate", "seeds", "IQM over training", "IQM at the end")


def text(found: "pandas.DataFrame") -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """(title, head, rows) for each environment, to be printed."""
    for env, part in found.groupby("env", sort=False):
        names = part["reference"].unique()
        lines: Any = part.itertuples()
        rows = [
            (
                row.method,
                row.settings,
                f"{row.frames:,}",
                f"{row.rate:g}",
                f"{row.seeds} ({row.source})",
                f"{row.training:.2f} [{row.training_low:.2f}, {row.training_high:.2f}]",
                f"{row.end:.2f} [{row.end_low:.2f}, {row.end_high:.2f}]",
                "" if row.chance is None or np.isnan(row.chance) else f"{row.chance:.2f}",
            )
            for row in lines
        ]
        yield str(env), (*HEAD, f"P(more than {' or '.join(names)})"), rows
