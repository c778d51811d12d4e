"""Tables of named things, and the error a wrong name gets."""

import difflib
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def lookup(table: Mapping[str, T], name: str, kind: str) -> T:
    """The row called `name`, or a ValueError that names the nearest ones.

    >>> lookup({"max": 1, "mean": 2}, "mex", "aggregator")
    Traceback (most recent call last):
    ValueError: no aggregator 'mex'; did you mean max?
    """
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name, table)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(table))}"
    raise ValueError(f"no {kind} {name!r}; {hint}")
