"""Prints tables, and converts strings of the command line."""

import shutil
import sys
from pathlib import Path

from splagger.errors import SettingError
from splagger.ranges import read_number
from splagger.tables import Table


def number(option: str, text: str) -> float:
    """Converts the text of a number."""
    try:
        return read_number(text)
    except ValueError:
        hint = "; separate several by spaces" * ("," in text)
        raise SettingError(f"{option} takes numbers or 'paper', got {text!r}{hint}") from None


def in_one_line(text: str, longest: int = 1000) -> str:
    """Returns a message in one line; the middle of a very long one, such as of a pasted text, is left out.

    >>> in_one_line("no method 'a\\nb'; did you mean\\nab?", 30)
    "no method 'a b' … id you mean ab?"
    """
    text = " ".join(text.splitlines())
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} … {text[-half:]}"


def size_of(path: Path) -> str:
    """Returns the size of a file in words."""
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def show(table: Table) -> None:
    """Prints a table after an empty line. A terminal would break lines that are too long inside of a word."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(f"\n{table.text(width)}")
