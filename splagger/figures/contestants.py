"""Who is compared on anybody's task: runs of one experiment as one method with its settings."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    each place where the same run was made again."""
    found = [one for group in _groups(runs) for one in _swept(*group)]
    if not found:
        raise RunError("none of these runs has got to its first evaluation yet")
    return found


def _groups(runs: Sequence[Recorded]) -> Iterator[tuple[list[Recorded], list[str]]]:
    """(runs of one experiment, what its settings do not tell)."""
    for group in _gather(runs, _experiment):
        again = len({_text(run.record["run"]) for run in group}) < len(group)
        places = _gather(group, _place) if again else [group]
        env, episodes = group[0].name[0], _episodes(group[0])
        others = {_episodes(run) for run in runs if run.name[0] == env} - {episodes}
        words = [f"episodes {episodes}"] if others else []
        for part in places:
            yield part, [*words, f"in {_place(part[0])}"] if len(places) > 1 else words


def _swept(group: list[Recorded], more: list[str]) -> Iterator[Contestant]:
    """One for each value of the numbers besides rate and seed."""
    swept: dict[Settings, list[tuple[Recorded, Members]]] = {}
    for run in group:
        for settings, members in run.members.items():
            swept.setdefault(settings, []).append((run, members))
    differ = [k for k in Settings._fields if len({getattr(s, k) for s in swept}) > 1]
    given = group[0].record["arguments"].get("overrides", {})
    usual = [f"{name}={value}" for name, value in given.items()]
    for settings, found in swept.items():
        words = [f"{k.replace('_', ' ')} {getattr(settings, k):g}" for k in differ]
        members = pool([members for _, members in whole(found)])
        yield Contestant(_task(group[0]), *group[0].name, (*usual, *words, *more), members)


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
    return run.record["run"].get("episodes")


def _place(run: Recorded) -> Path:
    """The folder that holds environments, which hold methods, which hold runs."""
    return run.path.parent.parent.parent


def _text(data: Any) -> str:
    return json.dumps(data, sort_keys=True)
