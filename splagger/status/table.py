"""The overview as a table of the terminal."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from splagger.runs.record import COMPACT_NETWORK, as_text
from splagger.status.row import STATES, Row
from splagger.tables import Table, clock, differing
from splagger.zoo.recipes import COMPACT

HEAD = (
    "environment",
    "method",
    "settings",
    "runs",
    "state",
    "node",
    "progress",
    "left",
    "frames/s",
)


def status_table(rows: Sequence[Row]) -> Table:
    """Returns one line per experiment; the title counts the states."""
    counts = Counter(row.state for row in rows)
    states = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    experiments = "1 experiment" if len(rows) == 1 else f"{len(rows)} experiments"
    title = f"{experiments}: {states}" if rows else experiments
    kinds = [(row.env, row.method) for row in rows]
    default = lambda row, name: _default(rows[row], name)  # noqa: E731
    settings = differing([row.settings for row in rows], kinds, default)
    same = Counter((kind, *words) for kind, words in zip(kinds, settings, strict=True))
    folders, cells = [row.folder for row in rows], []
    for row, kind, words in zip(rows, kinds, settings, strict=True):
        # Rows that are alike, such as those of other seeds, are named by their folders.
        named = [f"run {_shortest(row.folder, folders)}"] * (same[kind, *words] > 1)
        cells.append(_cells(row, ", ".join([*words, *named])))
    table = Table(title, (*HEAD, ""), cells)
    return table if any(cell[2] for cell in cells) else table.without("settings")


def _shortest(folder: str, folders: Sequence[str]) -> str:
    """Returns the last parts of a path, as many as no other path ends with.

    >>> _shortest("runs/a/t-ls/rnn/5ef0", ["runs/a/t-ls/rnn/5ef0", "runs/b/t-ls/rnn/5ef0"])
    'a/t-ls/rnn/5ef0'
    """
    parts, others = Path(folder).parts, [Path(other).parts for other in folders if other != folder]
    number = next(n for n in range(1, len(parts) + 1) if all(o[-n:] != parts[-n:] for o in others))
    return "/".join(parts[-number:])


def _default(row: Row, name: str) -> str:
    """Returns the value of a setting that the row does not name."""
    is_compact = COMPACT_NETWORK in row.settings and name in COMPACT
    return as_text(COMPACT[name]) if is_compact else "default"


def _cells(row: Row, settings: str) -> tuple[str, ...]:
    speed = "" if row.frames_per_second is None else f"{row.frames_per_second:,.0f}"
    left = "" if row.eta is None else clock(row.eta)
    runs = str(row.members) if row.members else ""
    done = f"{row.progress:.0%}"
    name = row.env, row.method, settings
    return *name, runs, row.state, row.node, done, left, speed, row.reason
