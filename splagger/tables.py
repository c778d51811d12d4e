"""Tables: lookup of rows by name, and tables as text or Markdown."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from splagger.errors import SettingError

T = TypeVar("T")


def lookup(table: Mapping[str, T], name: str, kind: str) -> T:
    """Returns the row called `name`; raises a SettingError with similar names if there is none.

    >>> lookup({"max": 1, "mean": 2}, "mex", "aggregator")
    Traceback (most recent call last):
    splagger.errors.SettingError: no aggregator 'mex'; did you mean max?
    """
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name, table)
    there = ", ".join(sorted(table)) or "none"
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {there}"
    raise SettingError(f"no {kind} {name!r}; {hint}")


def count(number: int, noun: str) -> str:
    """Returns a number with its noun.

    >>> count(1, "run"), count(1200, "run"), count(0, "fresh seed")
    ('1 run', '1,200 runs', '0 fresh seeds')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration_in_words(seconds: float | int) -> str:
    """Returns a duration without false precision.

    >>> duration_in_words(40), duration_in_words(200), duration_in_words(32_000), duration_in_words(400_000)
    ('40 s', '3 min', '9 h', '5 days')
    """
    for size, unit, least in ((86400, "days", 2 * 86400), (3600, "h", 5400), (60, "min", 90)):
        if seconds >= least:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, seconds):.0f} s"


def clock(seconds: float | int) -> str:
    """Returns a time as hours, minutes and seconds.

    >>> clock(59.7), clock(3600 * 26 + 61)
    ('1:00', '26:01:01')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:{minutes:02d}" if hours else f"{minutes}") + f":{seconds:02d}"


def listed(items: Iterable[str], most: int = 3) -> str:
    """Returns at most so many items, and the number of the others.

    >>> listed("abcde"), listed(["a"])
    ('a, b, c and 2 more', 'a')
    """
    items = list(items)
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def differing(
    rows: Sequence[Sequence[str]],
    kinds: Sequence[Any] = (),
    default: Callable[[int, str], str | None] = lambda row, name: None,
) -> list[list[str]]:
    """Returns the words of each row that not all rows share.

    - `kinds`: of each row, such as its environment and method.
    - `default`: returns the value of a setting that row `row` lacks and another one of its kind has, as NAME=VALUE.

    >>> differing([("width=64", "skip=0"), ("width=64", "skip=1"), ("width=64",)])
    [['skip=0'], ['skip=1'], []]
    >>> differing([("skip=0",), (), ()], ("a", "a", "b"), lambda row, name: "0.5")
    [['skip=0'], ['skip=0.5'], []]
    """
    shared = set(rows[0]).intersection(*rows) if rows else set()
    kept = [[word for word in row if word not in shared] for row in rows]
    names = [[word.partition("=")[0] for word in row if "=" in word] for row in kept]
    for i, kind in enumerate(kinds):
        alike = (found for j, found in enumerate(names) if kinds[j] == kind)
        order = sorted({name for found in alike for name in found})
        lacks = [name for name in order if name not in names[i]]
        kept[i] += [f"{name}={value}" for name in lacks if (value := default(i, name)) is not None]
        place = {name: index for index, name in enumerate(order)}
        kept[i].sort(key=lambda word: place.get(word.partition("=")[0], len(place)))
    return kept


@dataclass(frozen=True)
class Table:
    """A table with a title, column heads and rows of strings; line breaks separate the items of a cell."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def text(self, width: int | None = None) -> str:
        """Returns plain text with aligned columns.

        If the table is wider than `width`, last cells that are single words, such as paths, get their own lines.

        >>> table = Table("Speed", ("machine", "frames/s"), [("laptop", "1,642")])
        >>> print(table.text())
        Speed
          machine  frames/s
          laptop   1,642
        >>> print(table.text(width=12))
        Speed
          machine
            frames/s
          laptop
            1,642
        """
        lines = [self.head, *self.rows] if any(self.head) else self.rows
        widths = [max(len(line[i]) for line in [self.head, *lines]) for i in range(len(self.head))]
        fits = width is None or 2 * len(widths) + sum(widths) <= width
        if fits or any(" " in line[-1] for line in lines):
            return "\n".join([self.title, *(_aligned(line, widths) for line in lines)])
        parts = ((_aligned(line[:-1], widths[:-1]), f"    {line[-1]}".rstrip()) for line in lines)
        return "\n".join([self.title, *(part for pair in parts for part in pair if part)])

    def without(self, name: str) -> "Table":
        """Returns the table without a column."""
        kept = [i for i, other in enumerate(self.head) if other != name]
        head, *rows = (tuple(row[i] for i in kept) for row in (self.head, *self.rows))
        return Table(self.title, head, rows)

    def markdown(self) -> str:
        """Returns a Markdown table without the title.

        >>> print(Table("", ("a", "b"), [("1", "x|y")]).markdown())
        | a | b |
        |---|---|
        | 1 | x\\|y |
        """
        cells = [[c.replace("|", r"\|").replace("\n", "<br>") for c in row] for row in self.rows]
        lines = [list(self.head), ["---"] * len(self.head), *cells]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace(" --- ", "---")


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    row = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"  {row}".rstrip()
