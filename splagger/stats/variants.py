"""Variants: the runs of one experiment, joined as one method with its settings."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from splagger.errors import RunError
from splagger.runs.axes import PLURALS
from splagger.runs.record import setting_of
from splagger.stats.members import Members, Settings, pool, trained_twice
from splagger.stats.recorded import Part, RecordedRun, pilot_of, relative, that_count
from splagger.stats.selection import Chosen, unbiased
from splagger.tables import count, differing, listed


@dataclass(frozen=True, eq=False)
class Variant:
    """A method with its settings, on a task."""

    plan: Mapping[str, Any]  # the description of its newest run
    task: str  # the environment with all its settings
    env: str
    method: str
    settings: tuple[str, ...]  # the settings that are not defaults
    members: Members
    folder: str  # the name of the newest run folder
    anneals: bool  # whether the learning rate falls during training
    trained: int  # frames of the longest run; `members` have those that all runs share
    ended: bool  # whether any of its runs has ended
    pilot: Members | None  # of a shorter sweep that chose the rate, see `pilot_of`
    notes: tuple[str, ...]  # runs and curves that do not count

    def chosen(
        self, choose: Callable[..., Chosen] = unbiased, at: np.ndarray | None = None
    ) -> Chosen:
        """Returns the curves at the best rate: by default on seeds that it was not chosen on, if there are any.

        - `at`: the frames of the curves, also in the choice of the rate; by default those of all evaluations.
        """
        if at is None:
            return choose(self.members, self.pilot)
        return choose(self.members.sampled(at), self.pilot and self.pilot.until(at[-1]))

    def distinguishing(self, others: Sequence["Variant"]) -> list[str]:
        """Returns the settings that not all of `others` share, or all if there are no others.

        Where only others have a setting, it is shown with the value that it has here.
        """
        if len(others) < 2:
            return list(self.settings)
        default = lambda row, name: setting_of(others[row].plan, name)  # noqa: E731
        kinds = [(other.env, other.method) for other in others]
        words = differing([other.settings for other in others], kinds, default)
        return words[others.index(self)]


def variants(runs: Sequence[RecordedRun]) -> list[Variant]:
    """Joins runs that differ only in their grid into variants, one per value of the swept settings.

    Repetitions of a run in other folders are separate variants. Variants that nothing else distinguishes, for example
    after edits of the code, are named by their folder. Raises a RunError before the first evaluation.
    """
    found = [one for group in _groups(runs) for one in _by_settings(*group)]
    if not found:
        raise RunError("none of these runs has reached its first evaluation yet")
    named = Counter((one.env, one.method, one.settings) for one in found)
    return [
        replace(one, settings=(*one.settings, f"run {one.folder}"))
        if named[one.env, one.method, one.settings] > 1
        else one
        for one in found
    ]


def _groups(runs: Sequence[RecordedRun]) -> Iterator[tuple[list[RecordedRun], list[str]]]:
    """Yields the runs of each experiment, and the words that distinguish it beyond its settings."""
    evaluated = [run for run in runs if run.members]
    for group in _gather(evaluated, _experiment):
        env, episodes = group[0].record.env, group[0].record.episodes
        others = {run.record.episodes for run in evaluated if run.record.env == env}
        words = [f"episodes {episodes}"] if others - {episodes, None} and episodes else []
        location, parts = _root, [group]
        if _has_repeats(group):
            parts = _gather(group, location)
        if any(map(_has_repeats, parts)):
            location = lambda run: run.path.resolve()  # noqa: E731
            parts = _gather(group, location)
        for part in parts:
            yield part, [*words, f"in {relative(location(part[0]))}"] if len(parts) > 1 else words


def _has_repeats(group: list[RecordedRun]) -> bool:
    """Returns whether the same run occurs twice."""
    return len({_text(run.record.plan) for run in group}) < len(group)


def _by_settings(group: list[RecordedRun], extra: list[str]) -> Iterator[Variant]:
    """Yields one variant per value of the swept settings."""
    swept: dict[Settings, list[Part]] = {}
    for run in sorted(group, key=lambda run: run.record.started):
        for settings, members in run.members.items():
            swept.setdefault(settings, []).append((run, members))
    differ = [k for k in Settings._fields if len({getattr(s, k) for s in swept}) > 1]
    changed = group[0].record.settings
    for settings, found in swept.items():
        words = [f"{k.replace('_', ' ')} {getattr(settings, k):g}" for k in differ]
        counted = that_count(found)
        parts, last = [members for _, members in counted], counted[-1][0]
        members = pool(parts)
        pilot = pilot_of(found, counted, members)
        yield Variant(
            last.record.plan,
            _task(last),
            *last.name,
            (*changed, *words, *extra),
            members,
            last.path.resolve().name,
            last.anneals,
            int(max(part.frames[-1] for part in parts)),
            any(run.record.ended for run, _ in counted),
            pilot and pilot[1],
            tuple(_notes(found, counted, pilot)),
        )


def _notes(found: Sequence[Part], counted: Sequence[Part], pilot: Part | None) -> Iterator[str]:
    """Yields what a reader must know about the runs of a variant: which are left out, and which replace others."""
    if pilot:
        yield f"the rate is that of {pilot[0].path.name} ({pilot[0].shortness})"
    used = [run for run, _ in (*counted, *filter(None, [pilot]))]
    left_out = [run for run, _ in found if not any(run is other for other in used)]
    if left_out:
        yield f"without {listed(f'{run.path.name} ({run.shortness})' for run in left_out)}"
    if twice := trained_twice([members for _, members in counted]):
        yield f"{count(twice, 'agent')} trained twice with other results, of which the newer count"


def _gather(
    runs: Iterable[RecordedRun], key: Callable[[RecordedRun], Any]
) -> list[list[RecordedRun]]:
    groups: dict[Any, list[RecordedRun]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return list(groups.values())


def _experiment(run: RecordedRun) -> str:
    """Returns everything that the runs of one experiment have in common; a race changes no curve that counts."""
    plan = run.record.plan
    return _text({k: v for k, v in plan.items() if k not in {*PLURALS, "updates", "race"}})


def _task(run: RecordedRun) -> str:
    return _text([run.record.plan.get(k) for k in ("env", "environment", "meta", "episodes")])


def _root(run: RecordedRun) -> Path:
    """Returns the root of <root>/<env>/<method>/<run>."""
    return run.path.resolve().parent.parent.parent


def _text(data: Any) -> str:
    return json.dumps(data, sort_keys=True)
