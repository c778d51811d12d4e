"""The command `status`."""

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from splagger.cli.formatting import show
from splagger.status import Overview, overview, status_table

Folder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
EVERY = 5.0  # seconds between two tables of --watch
CLEAR = "\033[H\033[2J\033[3J"


@dataclass(frozen=True)
class Status:
    """Show all experiments below a folder: state, machine, progress, time left, speed, and why one failed.

    Reads files only, so it works while a sweep trains on any machines, and after it ended.

    Example: splagger status runs --watch
    """

    folder: Folder = Path("runs")
    """The --out folder of `train`, `sweep` or `reproduce`, or a folder that contains run folders."""
    watch: bool = False
    """Repeat every five seconds, until all experiments have ended or until Ctrl-C."""
    json: bool = False
    """Print JSON; with --watch, one line each time."""

    def __call__(self) -> None:
        while True:
            found = overview(self.folder)
            self._print(found)
            if not self.watch or all(row.state in ("finished", "failed") for row in found.rows):
                return
            _pause()

    def _print(self, found: Overview) -> None:
        if self.json:
            data = {"experiments": [r._asdict() for r in found.rows], "notes": found.notes}
            print(json.dumps(data, indent=None if self.watch else 2), flush=True)
            return
        if self.watch and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
            print(CLEAR, end="")
        if found.rows:
            show(status_table(found.rows))
        else:
            print(f"no experiments in {self.folder}")
        for note in found.notes:
            print(f"\n  {note}")
        sys.stdout.flush()


def _pause() -> None:
    time.sleep(EVERY)
