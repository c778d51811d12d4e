"""Progress of a run: a live view on a terminal, plain lines elsewhere."""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

from splagger.runs.run import Point
from splagger.tables import clock


class Silent:
    """Shows nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def begin(self, seconds: float) -> None:
        """Called after compilation, with the seconds it took."""

    def untrained(self, returns: Sequence[float]) -> None:
        """Called once before training, with the return of each member."""

    def show(self, update: int, frames: int, rate: float, returns: Sequence[float]) -> None:
        """Called after each block of updates.

        - `frames`: per member, since the start.
        - `rate`: frames per second of all members together.
        - `returns`: the latest return of each member.
        """

    def narrow(self, members: int) -> None:
        """Called when fewer members than before train on, with their number."""

    def note(self, text: str) -> None:
        """Prints a message to the user."""

    def warn(self, text: str) -> None:
        """Warns of something that makes the results doubtful, even if nothing else is shown."""
        warnings.warn(text, stacklevel=2)


class Lines(Silent):
    """Prints one line every few seconds, for logs and pipes."""

    def __init__(
        self,
        title: str,
        points: Sequence[Point],
        updates: int,
        every: float = 10.0,
        write: Callable[[str], Any] | None = None,
    ):
        self.title, self.points, self.updates = title, points, updates
        self.every, self.write, self.last = every, write or _print, -math.inf
        self.members = len(points)  # those that still train

    def __enter__(self):
        self.write(f"{self.title}  compiling …")
        return self

    def begin(self, seconds):
        self.write(f"{self.title}  compiled in {seconds:.0f} s, training …")

    def untrained(self, returns):
        self.write(f"{self.title}  before training  {best_of(returns)}")

    def show(self, update, frames, rate, returns):
        now = time.monotonic()
        if now - self.last < self.every and update < self.updates:
            return
        self.last = now
        self.write(
            f"{self.title}  update {update}/{self.updates}  {frames:,} frames per run  {rate:,.0f} frames/s"
            f"  {self.remaining(update, frames, rate)}  {best_of(returns)}"
        )

    def narrow(self, members):
        self.members = members

    def note(self, text):
        self.write(text)

    def warn(self, text):
        self.write(f"WARNING: {text}")

    def remaining(self, update, frames, rate) -> str:
        """Returns the remaining time at this speed: "8:03:20 to go"."""
        left = int((self.updates - update) / max(update, 1) * frames * self.members / rate)
        return f"{clock(left)} to go"


class LiveView(Lines):
    """A progress bar and a table of returns per learning rate, redrawn in place."""

    live: Any = None

    def __enter__(self):
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        text = Text(f"{self.title}: compiling …")
        self.live = Live(text, console=Console(stderr=True), refresh_per_second=4)
        self.live.__enter__()
        return self

    def __exit__(self, *error):
        self.live.__exit__(*error)

    def begin(self, seconds):
        self._update(f"{self.title}: compiled in {seconds:.0f} s, training …")

    def untrained(self, returns):
        self._update(f"{self.title}: training … {best_of(returns)} before training")

    def _update(self, text: str) -> None:
        """Shows a text as it is: square brackets in names are not markup."""
        from rich.text import Text

        self.live.update(Text(text))

    def show(self, update, frames, rate, returns):
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        head = Text(self.title, style="bold").append(
            f"  {frames:,} frames per run  {rate:,.0f} frames/s  {self.remaining(update, frames, rate)}",
            style="not bold",
        )
        table = Table("rate", "mean return", "best", "seeds", box=None, header_style="dim")
        for learning_rate in dict.fromkeys(p.rate for p in self.points):
            group = [
                r for p, r in zip(self.points, returns, strict=True) if p.rate == learning_rate
            ]
            finite = [r for r in group if math.isfinite(r)]
            mean = f"{sum(finite) / len(finite):.2f}" if finite else "stopped"
            best = f"{max(finite):.2f}" if finite else ""
            table.add_row(f"{learning_rate:g}", mean, best, f"{len(finite)}/{len(group)}")
        bar = Table.grid()  # a bar alone does not end its line
        bar.add_row(ProgressBar(total=self.updates, completed=update, width=60))
        self.live.update(Group(head, bar, table))

    def note(self, text, style="yellow"):
        from rich.console import Console

        console = self.live.console if self.live else Console(stderr=True)
        console.print(text, style=style, markup=False)

    def warn(self, text):
        self.note(f"WARNING: {text}", "bold red")


def _print(text: str) -> None:
    """Prints a line, whatever characters the output's encoding lacks: progress must not end a run."""
    try:
        print(text)
    except UnicodeEncodeError as error:
        print(text.encode(error.encoding, "replace").decode(error.encoding))


def best_of(returns: Sequence[float]) -> str:
    """Returns the best finite return as text."""
    best = max((r for r in returns if math.isfinite(r)), default=math.nan)
    return f"best return {best:.2f}"


def choose(
    title: str, points: Sequence[Point], updates: int, show: bool | Literal["lines"] = True
) -> Silent:
    """Returns a live view on a terminal and lines elsewhere; "lines" prints lines everywhere."""
    import sys

    if not show:
        return Silent()
    view = LiveView if sys.stderr.isatty() and show != "lines" else Lines
    return view(title, points, updates)
