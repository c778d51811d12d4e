"""The forest plot of all claims: their effects, intervals and regions, grouped by unit, as a picture and as a CSV."""

import csv
import io
from pathlib import Path

from splagger.paper.claims import Claim
from splagger.paper.comparisons import Level
from splagger.paper.verdicts import (
    FAILS,
    FAILS_SO_FAR,
    HOLDS,
    HOLDS_SO_FAR,
    UNDECIDED,
    Finding,
    Verdict,
)
from splagger.paper_numbers import SCALES
from splagger.plots.export import write_all
from splagger.plots.forest import (
    WIDE,
    ForestPanel,
    ForestRow,
    Interval,
    Layout,
    Look,
    forest_picture,
)

LOOKS = {
    HOLDS: Look(HOLDS, "#00765a", "o", "✓"),
    HOLDS_SO_FAR: Look(HOLDS_SO_FAR, "#6fb8a5", "o", "✓"),
    FAILS: Look(FAILS, "#c1440e", "X", "✗"),
    FAILS_SO_FAR: Look(FAILS_SO_FAR, "#e2a07f", "X", "✗"),
    UNDECIDED: Look(UNDECIDED, "#777777", "s", "?"),
}
SHORT = (HOLDS_SO_FAR, FAILS_SO_FAR)
# Units of the claims' tests, in the order of the panels → (title, axis)
UNITS = {
    "difference, fraction of the scale": (
        "Which of two methods earns more?",
        "difference of returns, fraction of the scale",
    ),
    "return at the end of training": (
        "Which methods learn the task?",
        "return at the end (0: guessing, 1: best known)",
    ),
    "log₂ of the ratio of frames": (
        "Which methods need fewer frames?",
        "log₂ of the ratio of frames",
    ),
    "decades from the first third to the last": (
        "Which values decay, grow or persist along a sequence?",
        "decades from the first third to the last",
    ),
    "exponent of t": ("How fast does the variance fall?", "exponent of t"),
    "difference of the means": (
        "Which methods depend on the order of their inputs?",
        "difference between the encodings' changes",
    ),
}
Results = list[tuple[Claim, Verdict]]


def forest_panels(results: Results) -> list[ForestPanel]:
    """Returns the claims with at least one effect, one panel per unit."""
    panels = []
    for unit, (title, axis) in UNITS.items():
        found = [(c, v) for c, v in results if c.test.unit == unit and _has_effect(v)]
        if found:
            panels.append(ForestPanel(title, axis, tuple(_row(*pair) for pair in found)))
    return panels


def claims_picture(results: Results, kind: str, layout: Layout = WIDE) -> bytes:
    """Draws every claim with data, and lists the others, as PNG, PDF or SVG."""
    listed = [f"{c.section}: {c.sentence}" for c, v in results if not _has_effect(v)]
    used = {finding.outcome for _, verdict in results for finding in verdict.findings}
    looks = [look for outcome, look in LOOKS.items() if outcome in used or outcome not in SHORT]
    return forest_picture(forest_panels(results), looks, listed, kind, layout)


def claims_csv(results: Results) -> str:
    """Returns every effect with its interval and region, as in the table of claims, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ("claim", "section", "verdict", "comparison", "outcome", "unit", "value", "low", "high")
    writer.writerow((*head, "region_low", "region_high"))
    for claim, verdict in results:
        about = (claim.name, claim.section, verdict.outcome)
        for finding in verdict.findings:
            effect = finding.effect or ("", "", "")
            numbers = (f"{x:.6g}" if x != "" else "" for x in (*effect, *claim.test.region))
            writer.writerow((*about, finding.about, finding.outcome, claim.test.unit, *numbers))
    return text.getvalue()


def save_claims(results: Results, folder: str | Path) -> list[Path]:
    """Writes <folder>/claims.png, .pdf and .csv, and returns their paths; none if no claim has data."""
    if not forest_panels(results):
        return []
    contents = {kind: claims_picture(results, kind) for kind in ("png", "pdf")}
    contents["csv"] = claims_csv(results).encode()
    return write_all(folder, {f"claims.{kind}": data for kind, data in contents.items()})


def _has_effect(verdict: Verdict) -> bool:
    return any(finding.effect for finding in verdict.findings)


def _row(claim: Claim, verdict: Verdict) -> ForestRow:
    place = _normalized(claim)
    region = claim.test.region
    intervals = tuple(_interval(f, place) for f in verdict.findings if f.effect)
    look = LOOKS[verdict.outcome]
    return ForestRow(claim.sentence, (place(region.low), place(region.high)), intervals, look)


def _normalized(claim: Claim):
    """Returns the map from effects to the axis: returns become fractions of the environment's scale."""
    if not isinstance(claim.test, Level):
        return lambda x: x
    guess, best = SCALES[claim.test.env]
    return lambda x: (x - guess) / (best - guess)


def _interval(finding: Finding, place) -> Interval:
    assert finding.effect is not None
    value, low, high = finding.effect
    label = finding.about.removeprefix("against ")
    return Interval(label, place(low), place(value), place(high), LOOKS[finding.outcome])
