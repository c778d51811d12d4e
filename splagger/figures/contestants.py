"""Who is compared on anybody's task: runs of one experiment as one method with its settings."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from splagger.figures.evidence import GRIDS, Chosen, Recorded, unbiased, whole
from splagger.figures.members import Members, Settings, pool
from splagger.recorded import RunError


@dataclass(frozen=True, eq=False)
class Contestant:
    """A method with its settings, on a task."""

    task: str  # the environment with all that determines what happens in it
    env: str
    method: str
    settings: tuple[str, ...]  # all that is not usual
    members: Members
    folder: str  # the name of its newest run's

    @cached_property
    def chosen(self) -> Chosen:
        """Its best rate, on seeds that the rate was not chosen on where there are some."""
        return unbiased(self.members)

    def apart(self, rivals: Sequence["Contestant"]) -> list[str]:
        """Those of its settings that not all have."""
        common = set(self.settings) if len(rivals) > 1 else set()
        for rival in rivals:
            common &= set(rival.settings)
        return [word for word in self.settings if word not in common]


def contestants(runs: Sequence[Recorded]) -> list[Contestant]:
    """Runs that differ by their grid alone are one; each swept number makes one of its own, and so does
    each place where the same run was made again. What nothing else tells apart (code that was edited) has
    the name of its folder."""
    found = [one for group in _groups(runs) for one in _swept(*group)]
    if not found:
        raise RunError("none of these runs has got to its first evaluation yet")
    named = Counter((one.env, one.method, one.settings) for one in found)
    return [
        replace(one, settings=(*one.settings, f"run {one.folder}"))
        if named[one.env, one.method, one.settings] > 1
        else one
        for one in found
    ]


def _groups(runs: Sequence[Recorded]) -> Iterator[tuple[list[Recorded], list[str]]]:
    """(runs of one experiment, what its settings do not tell)."""
    begun = [run for run in runs if run.members]
    for group in _gather(begun, _experiment):
        env, episodes = group[0].name[0], _episodes(group[0])
        others = {_episodes(run) for run in begun if run.name[0] == env} - {episodes, None}
        words = [f"episodes {episodes}"] if others and episodes else []
        place, parts = _place, [group]
        if _repeats(group):
            parts = _gather(group, place)
        if any(map(_repeats, parts)):
            place = lambda run: run.path.resolve()  # noqa: E731
            parts = _gather(group, place)
        for part in parts:
            yield part, [*words, f"in {_near(place(part[0]))}"] if len(parts) > 1 else words


def _repeats(group: list[Recorded]) -> bool:
    """Whether a run is there twice."""
    return len({_text(run.record["run"]) for run in group}) < len(group)


def _swept(group: list[Recorded], more: list[str]) -> Iterator[Contestant]:
    """One for each value of the numbers besides rate and seed."""
    swept: dict[Settings, list[tuple[Recorded, Members]]] = {}
    for run in group:
        for settings, members in run.members.items():
            swept.setdefault(settings, []).append((run, members))
    differ = [k for k in Settings._fields if len({getattr(s, k) for s in swept}) > 1]
    given = group[0].record["arguments"].get("overrides", {})
    usual = [word for item in given.items() for word in _words(*item)]
    for settings, found in swept.items():
        words = [f"{k.replace('_', ' ')} {getattr(settings, k):g}" for k in differ]
        counted = whole(found)
        members, last = pool([members for _, members in counted]), counted[-1][0]
        told = (*usual, *words, *more)
        yield Contestant(_task(last), *last.name, told, members, last.path.resolve().name)


def _words(name: str, value: Any) -> list[str]:
    """A setting as figures name it; what an environment is made with, each for itself."""
    if name != "env.kwargs":
        return [f"{name}={value}"]
    return [f"{key}={one}" for key, one in json.loads(value).items()]


def _gather(runs: Iterable[Recorded], key: Callable[[Recorded], Any]) -> list[list[Recorded]]:
    groups: dict[Any, list[Recorded]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return list(groups.values())


def _experiment(run: Recorded) -> str:
    """All that two runs of one experiment have in common."""
    return _text({k: v for k, v in run.record["run"].items() if k not in GRIDS | {"updates"}})


def _task(run: Recorded) -> str:
    return _text([run.record["run"].get(k) for k in ("env", "environment", "episodes")])


def _episodes(run: Recorded) -> int | None:
    return run.record["run"].get("episodes") or run.record["arguments"].get("episodes")


def _place(run: Recorded) -> Path:
    """The folder that holds environments, which hold methods, which hold runs."""
    return run.path.resolve().parent.parent.parent


def _near(path: Path) -> Path:
    """As seen from here, if it is below."""
    here = Path().resolve()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _text(data: Any) -> str:
    return json.dumps(data, sort_keys=True)
