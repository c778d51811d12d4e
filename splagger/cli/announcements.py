"""What a user reads before training on an environment of others: notes about it, and how long it will take."""

import dataclasses
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splagger.runs.run import Run

HINT_FROM = 3600.0  # seconds from which on a smaller size is worth a hint


def announce(run: "Run") -> None:
    """Prints the notes of an environment and, on a CPU, the estimated duration. Environments of ours have neither."""
    import jax

    notes = list(run.row.meta.notes)
    if ":" in run.row.name and jax.default_backend() == "cpu":
        notes.append(f"{run.row.name}: {durations(run)}")
    for note in notes:
        print(note, file=sys.stderr)


def durations(run: "Run") -> str:
    """Returns the estimated duration of a run, and of the compact network with one rate if it is shorter by far."""
    from splagger.bridges import trial
    from splagger.ppo.duration import estimated_seconds
    from splagger.registry import COMPACT

    step = trial(run.row.meta)
    here = estimated_seconds(run.config, run.size, step)
    small = dataclasses.replace(run.config, network=COMPACT)
    compact = estimated_seconds(small, len(run.seeds), step)
    is_compact = run.row.network == COMPACT
    hint = f"; --small: about {spoken(compact)}" if here > HINT_FROM and not is_compact else ""
    return f"{'compact' if is_compact else 'full'} size: about {spoken(here)} here{hint}"


def spoken(seconds: float | int) -> str:
    """Returns a duration in words.

    >>> spoken(40), spoken(200), spoken(32_000), spoken(400_000)
    ('40 s', '3 min', '9 h', '5 days')
    """
    for size, unit, least in ((86400, "days", 2 * 86400), (3600, "h", 5400), (60, "min", 90)):
        if seconds >= least:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, seconds):.0f} s"
