"""Which runs are long enough to count, and which are too long to be compared."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splagger.stats.evidence import RecordedRun
    from splagger.stats.members import Members

COVERED = (
    0.9  # two runs count as equally long if the shorter has at least 90% of the other's frames
)


def without_trials(
    found: list[tuple["RecordedRun", "Members"]],
) -> list[tuple["RecordedRun", "Members"]]:
    """Returns the runs, oldest first. Drops unfinished runs if any is finished, and short runs if there are longer ones."""
    found = sorted(found, key=lambda f: f[0].record.started)
    found = [f for f in found if f[0].record.ended] or found[-1:]
    most = max((members.frames[-1] for _, members in found), default=0)
    return [f for f in found if f[1].frames[-1] >= COVERED * most]


def too_long(groups: Sequence[Sequence["RecordedRun"]]) -> list["RecordedRun"]:
    """Returns the runs without which the longest of each group are about equally long.

    If learning rates are annealed, a long run does not begin as a short one. Its first frames cannot be compared with
    a short run, but the short runs of its group can. Returns no run if no rate is annealed, or if all runs of a
    group would be too long.

    - `groups`: the runs of each method that is compared.
    """
    ended = [[run for run in group if run.record.ended] or list(group) for group in groups]
    shortest = min((max(run.frames for run in group) for group in ended if group), default=0)
    longer = [[run for run in group if COVERED * run.frames > shortest] for group in ended]
    if any(group == long for group, long in zip(ended, longer, strict=True) if group):
        return []
    runs = [run for group in groups for run in group]
    annealed = any(run.record.plan["ppo"].get("anneal") for run in runs)
    return [run for long in longer for run in long] if annealed else []
