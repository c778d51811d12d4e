"""What a user reads before training: notes about the environment, what is rounded, and how long it will take."""

import dataclasses
import sys
from collections.abc import Sequence

import jax

from splagger.bridges import trial
from splagger.network import Network
from splagger.ppo.duration import estimated_seconds
from splagger.registry import COMPACT
from splagger.runs.run import Run
from splagger.tables import duration_in_words

# Seconds from which on the duration of our own environments is printed, and a smaller size is worth a hint.
LONG = 600.0


def announce(*runs: Run, small: str = "--small") -> None:
    """Prints the notes of environments and, on a CPU, the estimated duration of all runs together.

    For environments of ours, the duration is printed only if it is long.

    - `small`: how the caller asks for the compact network.
    """
    notes = list(dict.fromkeys(note for run in runs for note in run.row.meta.notes))
    if runs and jax.default_backend() == "cpu":
        seconds, compact = _seconds(*runs)
        if seconds > LONG or any(":" in run.row.name for run in runs):
            what = runs[0].row.name if len(runs) == 1 else f"{len(runs)} experiments"
            notes.append(f"{what}: {_durations(runs, seconds, compact, small)}")
    print_notes(notes)


def print_notes(notes: Sequence[str]) -> None:
    """Prints each note once, beside the output."""
    for note in dict.fromkeys(notes):
        print(note, file=sys.stderr)


def rounding_of(*runs: Run) -> list[str]:
    """Returns how many frames are trained where they are not those that were asked for."""
    notes = []
    for run in runs:
        frames = run.config.updates * run.row.ppo.batch
        interval = run.row.ppo.eval_interval * run.row.ppo.batch
        if frames != run.frames:
            why = f"training takes whole evaluation intervals of {interval:,} frames"
            notes.append(f"{frames:,} frames instead of {run.frames:,}: {why}")
    return notes


def _seconds(*runs: Run) -> tuple[float, float]:
    """Returns the estimated seconds of runs, and those with the compact network and one rate."""
    here = compact = 0.0
    for run in runs:
        step = trial(run.row.meta)
        smaller = dataclasses.replace(run.config, network=COMPACT)
        here += estimated_seconds(run.config, run.size, step)
        compact += estimated_seconds(smaller, len(run.seeds), step)
    return here, compact


def _durations(runs: Sequence[Run], seconds: float, compact: float, small: str) -> str:
    is_compact = all(run.row.network == COMPACT for run in runs)
    is_full = all(run.row.network == Network() for run in runs)
    size = "compact" if is_compact else "full" if is_full else "this"
    text = f"{size} size: about {duration_in_words(seconds)} here"
    if seconds < LONG:
        return f"{text}, plus the compilation"
    if not is_compact:
        return f"{text}; {small}: about {duration_in_words(compact)}"
    return text
