"""Recorded runs, and which of the runs of one experiment count."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from splagger.paper_numbers import PROTOCOLS
from splagger.runs.folder import RunFolder
from splagger.runs.record import RunRecord
from splagger.stats.members import Members, Settings, members_of, swept_seeds

# Two runs count as equally long if the shorter has at least this share of the other's frames.
COVERED = 0.9


class RecordedRun(NamedTuple):
    """The content of a run folder: its record and its members by their settings."""

    path: Path
    record: RunRecord
    members: dict[Settings, Members]

    @classmethod
    def read(cls, folder: RunFolder) -> "RecordedRun":
        record = folder.record()
        return cls(folder.path, record, members_of(folder, record))

    @property
    def name(self) -> tuple[str, str]:
        """(environment, method)."""
        return self.record.name

    @property
    def anneals(self) -> bool:
        """Whether the learning rate falls during training, so that a long run does not begin as a short one."""
        return bool(self.record.plan.get("ppo", {}).get("anneal"))

    @property
    def can_be_extended(self) -> bool:
        """Whether more frames continue this run, see `Run.can_be_extended`."""
        return not (self.anneals or {"updates", "race"} & set(self.record.plan))

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from the registered ones of the environment and the method."""
        protocol, episodes = PROTOCOLS.get(self.record.env), self.record.plan.get("episodes")
        other = protocol and episodes not in (None, protocol.episodes)
        return self.record.overrides | ({"episodes": episodes} if other else {})

    @property
    def shortness(self) -> str:
        """How far the run got, as the reason why longer or finished runs count and it does not."""
        if not self.members:
            return "not evaluated yet"
        frames = max(members.frames[-1] for members in self.members.values())
        return (
            f"only {frames:,.0f} frames"
            if self.record.ended
            else f"unfinished, {frames:,.0f} frames"
        )


Part = tuple[RecordedRun, Members]  # a run, and those of its members that have certain settings


def that_count(found: Sequence[Part]) -> list[Part]:
    """Returns the runs that count, oldest first: finished ones if there are any, and of these the long ones."""
    found = sorted(found, key=lambda f: f[0].record.started)
    found = [f for f in found if f[0].record.ended] or found
    most = max((members.frames[-1] for _, members in found), default=0)
    return [f for f in found if f[1].frames[-1] >= COVERED * most]


def pilot_of(found: Sequence[Part], counted: Sequence[Part], longer: Members) -> Part | None:
    """Returns the sweep that chose the rate of longer runs: the longest finished one that is too short to count.

    None if the longer runs, whose members are `longer`, are a sweep themselves, or if there is no shorter one.
    """
    if swept_seeds(longer):
        return None
    sweeps = [
        (run, members)
        for run, members in found
        if not any(run is other for other, _ in counted)
        and run.record.ended
        and len(members.rates) > 1
    ]
    return max(sweeps, key=lambda part: part[1].frames[-1], default=None)


def relative(path: Path) -> Path:
    """Returns the path relative to the working directory if it is inside."""
    here = Path().resolve()
    return path.relative_to(here) if path.is_relative_to(here) else path
