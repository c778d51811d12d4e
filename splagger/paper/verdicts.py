"""Verdicts from effects with intervals: one decision rule for every claim.

A claim names a region of effects. It holds if the whole 95% interval lies in the region, and does not hold if no part
of it does. Otherwise it is not decided. If runs are shorter than the paper's, it holds or does not hold "so far".
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from splagger.stats.estimates import Estimate

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not decided"
# Verdicts from runs that are shorter than the paper's; they are counted separately.
SO_FAR = {HOLDS: "holds so far", FAILS: "does not hold so far", UNDECIDED: UNDECIDED}
HOLDS_SO_FAR, FAILS_SO_FAR = SO_FAR[HOLDS], SO_FAR[FAILS]
OUTCOMES = (HOLDS, HOLDS_SO_FAR, FAILS, FAILS_SO_FAR, UNDECIDED)
FEASIBLE = 1_000  # seeds per method; more are not worth naming
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


def advice(effect: Estimate, region: Region, seeds: float | int) -> str:
    """Returns how many seeds an undecided comparison needs, in words; empty if it is decided.

    - `seeds`: how many of each method it has. For methods with n and m seeds this is the harmonic mean of n and m,
      since the variance of a difference is that of one seed times 1/n + 1/m.
    """
    if decide(effect, region) != UNDECIDED:
        return ""
    needed = seeds_to_decide(effect, region, seeds)
    if needed > FEASIBLE:
        return (
            "; the effect is so close to the boundary that no feasible number of seeds would decide"
        )
    return f"; about {max(needed, int(seeds) + 1)} seeds each would decide if the effect stays the same"


def decide(effect: Estimate, region: Region) -> str:
    """Returns the outcome: whether the interval lies in the region, outside of it, or across its boundary.

    >>> decide(Estimate(2.0, 1.0, 3.0), Region(low=0.5))
    'holds'
    >>> decide(Estimate(2.0, 1.0, 3.0), Region(high=0.5))
    'does not hold'
    >>> decide(Estimate(2.0, 1.0, 3.0), Region(low=2.5))
    'not decided'
    """
    if region.low < effect.low and effect.high < region.high:
        return HOLDS
    return FAILS if effect.high <= region.low or region.high <= effect.low else UNDECIDED


def seeds_to_decide(effect: Estimate, region: Region, seeds: float | int) -> int:
    """Returns how many seeds would decide if the effect stayed the same: intervals shrink with √seeds.

    n · (half of the interval / distance to the nearest boundary)², rounded up to two digits.

    >>> seeds_to_decide(Estimate(1.0, 0.0, 2.0), Region(low=0.5), seeds=10)
    40
    """
    distance = min(abs(effect.value - boundary) for boundary in region if math.isfinite(boundary))
    needed = seeds * ((effect.high - effect.low) / 2 / max(distance, 1e-9)) ** 2
    digits = max(0, math.floor(math.log10(max(needed, 1.0))) - 1)
    return math.ceil(needed / 10**digits) * 10**digits


def conclude(findings: Sequence[Finding]) -> Verdict:
    """Returns the verdict: a claim holds if all its parts hold, and is refuted if one part is."""
    outcomes = {finding.outcome for finding in findings}
    order = (FAILS, FAILS_SO_FAR, UNDECIDED, HOLDS_SO_FAR, HOLDS)
    outcome = next(o for o in order if o in outcomes)
    return Verdict(outcome, tuple(findings))
