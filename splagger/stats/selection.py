"""Selection of the rate and the seeds for which a method is reported."""

from typing import NamedTuple

import numpy as np

from splagger.stats.members import Members, best_rate, swept_seeds

# The seeds for which a rate is reported: new ones, the half that it was not chosen on, those that it was chosen on,
# or all, if there was only one rate.
FRESH, HELD_OUT, SAME, ONE_RATE = "fresh", "held out", "same", "one rate"
FIRST_FRESH_SEED = 100  # unless the sweep has seeds above it


class Chosen(NamedTuple):
    """The curves at the chosen rate, the kind of their seeds, and which of these agents diverged."""

    rate: float
    frames: np.ndarray  # [T]
    curves: np.ndarray  # [S, T]
    source: str  # FRESH, HELD_OUT, SAME or ONE_RATE
    finite: np.ndarray  # [S]

    @property
    def diverged(self) -> int:
        """The number of agents that diverged."""
        return int((~self.finite).sum())

    def without_diverged(self) -> "Chosen":
        """Returns the same without the agents that diverged."""
        return self._replace(curves=self.curves[self.finite], finite=self.finite[self.finite])

    @property
    def seeds(self) -> str:
        """The number of seeds, their kind, and how many diverged, as tables show them."""
        return seeds_in_words(len(self.curves), self.source, self.diverged)


def seeds_in_words(seeds: int, source: str, diverged: int) -> str:
    """Returns the seeds of a method as tables show them.

    >>> seeds_in_words(10, FRESH, 0), seeds_in_words(3, ONE_RATE, 2)
    ('10 (fresh)', '3 (one rate, 2 diverged)')
    """
    return f"{seeds} ({source}, {diverged} diverged)" if diverged else f"{seeds} ({source})"


def as_in_paper(members: Members) -> Chosen:
    """Returns the curves at the best rate on the seeds it was chosen on, as in the paper."""
    sweep = _sweep(members)
    return _at(best_rate(sweep), sweep, SAME if len(sweep.rates) > 1 else ONE_RATE)


def unbiased(members: Members, pilot: Members | None = None) -> Chosen:
    """Returns the curves at the best rate on seeds it was not chosen on: fresh ones, or half of at least four.

    Without such seeds, returns `as_in_paper`.

    - `pilot`: a shorter sweep that chooses the rate, if `members` were not trained at several rates themselves.
    """
    sweep, rate = _sweep(members) if pilot is None else pilot, swept_rate(members, pilot)
    fresh = [s for s in members.seeds(rate) if (rate, s) not in sweep.returns]
    if fresh:
        return _at(rate, members.of(fresh), FRESH)
    if sweep is pilot:
        return as_in_paper(members)
    seeds = sorted({seed for _, seed in sweep.returns})
    shared = sweep.at([rate for rate in sweep.rates if sweep.seeds(rate) == seeds])
    if len(shared.rates) < 2 or len(seeds) < 4:
        return as_in_paper(members)
    return _at(best_rate(shared.of(seeds[::2])), shared.of(seeds[1::2]), HELD_OUT)


def swept_rate(members: Members, pilot: Members | None = None) -> float:
    """Returns the best rate of the whole sweep."""
    return best_rate(_sweep(members) if pilot is None else pilot)


def for_figures(members: Members, pilot: Members | None = None) -> Chosen:
    """Returns the curves at the best rate on fresh seeds if there are any, else `as_in_paper`."""
    chosen = unbiased(members, pilot)
    return chosen if chosen.source == FRESH else as_in_paper(members)


def _sweep(members: Members) -> Members:
    """Returns the members whose seed was trained at several rates; all members if there are none."""
    several = swept_seeds(members)
    return members.of(several) if several else members


def _at(rate: float, members: Members, source: str) -> Chosen:
    return Chosen(rate, members.frames, members.curves(rate), source, members.finite(rate))
