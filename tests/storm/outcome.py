"""The result of one part of the storm, and the options that all parts share."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

from splagger.tables import Table


@dataclass(frozen=True)
class Outcome:
    """What became of all tries of one part.

    - `name`: what was tried.
    - `tries`: how often.
    - `failures`: one line for each failure, with the command that repeats it.
    - `counts`: the number of tries by their end, if the part tells more than one kind of end apart.
    """

    name: str
    tries: int
    failures: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join([table_of([self]).text(), *self.failures])


def table_of(outcomes: Sequence[Outcome]) -> Table:
    """Returns one row per part."""
    rows = [
        (
            outcome.name,
            f"{outcome.tries:,}",
            f"{len(outcome.failures):,}",
            ", ".join(f"{count:,} {end}" for end, count in outcome.counts.items()),
        )
        for outcome in outcomes
    ]
    return Table("Storm", ("part", "tries", "failures", "ends"), rows)


def parse_arguments(tries: int, seed: int = 0) -> tuple[int, int]:
    """Reads --tries and --seed from the command line; the arguments are the defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=tries)
    parser.add_argument("--seed", type=int, default=seed)
    given = parser.parse_args()
    return given.tries, given.seed
