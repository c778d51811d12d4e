"""The members of a run: one return curve per rate and seed, and the choice of the best rate."""

from collections import namedtuple
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from splagger.runs.axes import SETTINGS
from splagger.runs.folder import RunFolder
from splagger.runs.record import RunRecord

# The swept settings other than rate and seed, one field per axis.
Settings = namedtuple("Settings", [axis.name for axis in SETTINGS])
MOST_EVALUATIONS = 1_000_000  # of a run; more can only be the numbers of a damaged file
COLUMNS = ("frames", "rate", "seed", *Settings._fields, "return")


class Members(NamedTuple):
    """Return curves of agents that differ only in rate and seed, evaluated at the same frames."""

    frames: np.ndarray  # [T]
    returns: dict[tuple[float, int], np.ndarray]  # (rate, seed) → [T], NaN after the agent diverged

    @property
    def rates(self) -> list[float]:
        return sorted({rate for rate, _ in self.returns}, reverse=True)

    def seeds(self, rate: float) -> list[int]:
        return sorted(seed for r, seed in self.returns if r == rate)

    def of(self, seeds: Sequence[int]) -> "Members":
        """Returns the members with one of `seeds`."""
        return Members(self.frames, {k: v for k, v in self.returns.items() if k[1] in seeds})

    def at(self, rates: Sequence[float]) -> "Members":
        """Returns the members with one of `rates`."""
        return Members(self.frames, {k: v for k, v in self.returns.items() if k[0] in rates})

    def until(self, frames: float) -> "Members":
        """Returns the members up to these frames."""
        kept = self.frames <= frames
        return Members(self.frames[kept], {k: v[kept] for k, v in self.returns.items()})

    def sampled(self, frames: np.ndarray) -> "Members":
        """Returns the members at these frames: their evaluations there, or lines between two evaluations."""
        if np.array_equal(frames, self.frames):
            return self
        found = {k: np.interp(frames, self.frames, v) for k, v in self.returns.items()}
        return Members(frames, found)

    def curves(self, rate: float) -> np.ndarray:
        """Returns the curves [S, T] at one rate.

        After an agent has diverged, it counts with its return before training. Leaving it out, or keeping its last
        finite return, would hide the failure.
        """
        rows = [self.returns[rate, seed] for seed in self.seeds(rate)]
        return np.array([np.where(np.isfinite(row), row, row[0]) for row in rows])

    def finite(self, rate: float) -> np.ndarray:
        """Returns which agents [S] at one rate did not diverge."""
        return np.array([np.isfinite(self.returns[rate, seed]).all() for seed in self.seeds(rate)])


def best_rate(members: Members) -> float:
    """Returns the rate with the highest return, averaged over all evaluations and seeds, as in the paper.

    Rates at which an agent diverged or is missing are chosen only if there are no others, and then that which lasted
    longest.
    """
    most = max(len(members.seeds(rate)) for rate in members.rates)

    def merit(rate):
        rows = [members.returns[rate, seed] for seed in members.seeds(rate)]
        complete = len(rows) == most and all(np.isfinite(row).all() for row in rows)
        least = 0 if complete else min(map(lasted, rows))
        return complete, least, members.curves(rate).mean()

    return max(members.rates, key=merit)


def swept_seeds(members: Members) -> list[int]:
    """Returns the seeds that were trained at several rates."""
    seeds = [seed for _, seed in members.returns]
    return sorted({seed for seed in seeds if seeds.count(seed) > 1})


def members_of(folder: RunFolder, record: RunRecord) -> dict[Settings, Members]:
    """Returns the members of a run by their settings; empty before the first evaluation."""
    table = folder.curves(COLUMNS)
    if table is None:
        return {}
    reached = np.unique(table["frames"].to_numpy(float))
    frames = np.append(reached, _never_reached(record, reached))
    columns = [*Settings._fields, "rate", "seed"]
    members = table.groupby(columns).ngroup().to_numpy()
    first = np.unique(members, return_index=True)[1]
    keys = table[columns].to_numpy(float)[first]
    returns = np.full((len(keys), len(frames)), np.nan)
    returns[members, np.searchsorted(frames, table["frames"])] = table["return"]
    found = {settings: Members(frames, {}) for settings in _settings(keys[np.argsort(first)])}
    for settings, (rate, seed), row in zip(_settings(keys), keys[:, -2:], returns, strict=True):
        if np.isfinite(row[0]):
            found[settings].returns[float(rate), int(seed)] = row
    return {settings: some for settings, some in found.items() if some.returns}


def _settings(keys: np.ndarray) -> list[Settings]:
    """Returns the settings of each row of `keys`."""
    return [Settings(*row) for row in keys[:, :-2].tolist()]


def _never_reached(record: RunRecord, frames: np.ndarray) -> np.ndarray:
    """Returns the frames of evaluations that a run lacks because all its agents diverged before."""
    if not record.ended or len(frames) == 0:
        return np.zeros(0)
    # A run that failed in its first block was evaluated only once, and has recorded the frames of that block.
    last, interval = frames[-1], frames[1] - frames[0] if len(frames) > 1 else record.frames
    if interval <= 0:
        return np.zeros(0)
    missing = min(round((record.planned_frames - last) / interval), MOST_EVALUATIONS)
    return last + interval * np.arange(1, missing + 1)


def default_settings(record: RunRecord) -> Settings:
    """Returns the default settings of a run: those of its environment and its method."""
    return Settings(*(axis.default(record.plan)[0] for axis in SETTINGS))


def pool(parts: Sequence[Members]) -> Members:
    """Joins the members of several runs at their shared frames.

    Later parts replace earlier ones, unless a member is the same and lasted longer in the earlier one: a race may have
    stopped it in the later one.
    """
    frames = parts[0].frames
    for part in parts[1:]:
        frames = np.intersect1d(frames, part.frames)
    returns = {}
    for part in parts:
        kept = np.isin(part.frames, frames)
        for key, whole in part.returns.items():
            row = whole[kept]
            if key not in returns or not (
                lasted(returns[key]) > lasted(row) and agree(returns[key], row)
            ):
                returns[key] = row
    return Members(frames, returns)


def lasted(row: np.ndarray) -> int:
    """Returns the number of evaluations before an agent diverged or was stopped."""
    return int(np.isfinite(row).sum())


def agree(one: np.ndarray, other: np.ndarray) -> bool:
    """Returns whether two curves are equal as long as both last."""
    both = np.isfinite(one) & np.isfinite(other)
    return np.array_equal(one[both], other[both])


def trained_twice(parts: Sequence[Members]) -> int:
    """Returns how many members of `pool` have other curves in an earlier part, as long as both last."""
    newest: dict[tuple[float, int], Members] = {}
    differ = set()
    for part in parts:
        for key, row in part.returns.items():
            if key in newest:
                _, mine, others = np.intersect1d(
                    part.frames, newest[key].frames, return_indices=True
                )
                if not agree(row[mine], newest[key].returns[key][others]):
                    differ.add(key)
            newest[key] = part
    return len(differ)
