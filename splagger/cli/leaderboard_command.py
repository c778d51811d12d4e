"""The command `leaderboard`: methods × tasks from recorded runs, after training what is asked for."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from splagger.cli.formatting import show
from splagger.cli.train_commands import Grid, Sweep

Runs = Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")]


@dataclass(frozen=True)
class Leaderboard:
    """Rank methods over tasks: scores between a random and a reference policy, with 95% intervals.

    Writes leaderboard.md, leaderboard.png and leaderboard.csv. With --train, first trains all --methods on all
    --envs; finished runs are skipped.
    """

    runs: Runs = (Path("runs"),)
    """Run folders, or folders that contain run folders; --train writes to the first."""
    methods: tuple[str, ...] = ()
    """The methods to rank, or import paths such as my_module:my_method; all that were run by default."""
    envs: tuple[str, ...] = ()
    """The tasks; all that were run and have a known scale by default."""
    reference: str = "splagger"
    """The method that the others are compared with."""
    out: Path = Path("leaderboard")
    """Folder for the page, the figure and the CSV."""
    train: bool = False
    """Train what is missing."""
    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)

    def __call__(self) -> None:
        from splagger.report.leaderboard import standings_table, tasks_table, write_leaderboard
        from splagger.stats.leaderboard import leaderboard

        if self.train:
            Sweep(self.envs, self.methods, self.grid, self.runs[0])()
        board = leaderboard(
            *self.runs, methods=self.methods, envs=self.envs, reference=self.reference
        )
        show(tasks_table(board))
        show(standings_table(board))
        for path in write_leaderboard(board, self.out):
            print(path)
