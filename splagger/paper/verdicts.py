"""Verdicts from effects with intervals: one decision rule for every claim.

A claim names a region of effects. It holds if the whole 95% interval lies in the region, and does not hold if no part
of it does. Otherwise there is not enough data.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from splagger.stats.estimates import Estimate

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "not enough data"
SEEDS = 3  # the minimum; with three seeds, an interval reaches from the worst to the best


class Region(NamedTuple):
    """The effects for which a claim is true."""

    low: float = -math.inf
    high: float = math.inf


class Finding(NamedTuple):
    """The outcome of one comparison that a claim depends on."""

    about: str
    outcome: str
    effect: Estimate | None = None
    note: str = ""


class Verdict(NamedTuple):
    """The outcome of a claim, and the comparisons that it depends on."""

    outcome: str
    findings: tuple[Finding, ...]


def decide(effect: Estimate, region: Region) -> str:
    """Returns the outcome: whether the interval lies in the region, outside of it, or across its boundary.

    >>> decide(Estimate(2.0, 1.0, 3.0), Region(low=0.5))
    'holds'
    >>> decide(Estimate(2.0, 1.0, 3.0), Region(high=0.5))
    'does not hold'
    >>> decide(Estimate(2.0, 1.0, 3.0), Region(low=2.5))
    'not enough data'
    """
    if region.low < effect.low and effect.high < region.high:
        return HOLDS
    return FAILS if effect.high <= region.low or region.high <= effect.low else UNKNOWN


def conclude(findings: Sequence[Finding]) -> Verdict:
    """Returns the verdict: a claim holds if all its parts hold, and is refuted if one part is."""
    outcomes = {finding.outcome for finding in findings}
    outcome = next(o for o in (FAILS, UNKNOWN, HOLDS) if o in outcomes)
    return Verdict(outcome, tuple(findings))
