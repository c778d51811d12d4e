"""The command `leaderboard`: methods × tasks from recorded runs, after training what is asked for."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from splagger.cli.formatting import show
from splagger.cli.launch_options import Where
from splagger.cli.train_commands import Grid, Sweep
from splagger.ranges import FreshSeeds

if TYPE_CHECKING:
    from splagger.runs.run import Run

Runs = Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")]


@dataclass(frozen=True)
class Leaderboard:
    """Rank methods over tasks: scores between a random and a reference policy, with 95% intervals.

    Writes leaderboard.md, leaderboard.png and leaderboard.csv.
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
    """First train the rates and seeds of all --methods on all --envs; finished runs are skipped."""
    fresh: FreshSeeds = 0
    """With --train: the number of fresh seeds that each method is then trained with, at its best rate."""
    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)
    where: Annotated[Where, tyro.conf.arg(name="")] = field(default_factory=Where)

    def __call__(self) -> None:
        from splagger.report.leaderboard import (
            scores_table,
            standings_table,
            tasks_table,
            write_leaderboard,
        )
        from splagger.stats.leaderboard import leaderboard

        if self.train:
            self._train()
        board = leaderboard(
            *self.runs, methods=self.methods, envs=self.envs, reference=self.reference
        )
        show(tasks_table(board))
        show(scores_table(board))
        show(standings_table(board))
        for path in write_leaderboard(board, self.out):
            print(path)

    def _train(self) -> None:
        from splagger.launchers import train_all

        Sweep(self.envs, self.methods, self.grid, self.runs[0], where=self.where)()
        train_all(self.fresh_runs(), self.runs[0], on=self.where.launcher())

    def fresh_runs(self) -> "list[Run]":
        """Returns the runs with fresh seeds, at the best rate of each method on each task, that do not exist yet."""
        from splagger.paper.reproduce import FIRST_FRESH_SEED
        from splagger.stats.evidence import Evidence, Series
        from splagger.stats.selection import FRESH

        evidence, found = Evidence.read(self.runs[0]), []
        for env, method in ((env, method) for env in self.envs for method in self.methods):
            run = self.grid.run(env, method)
            chosen = evidence.unbiased(Series(run.row.name, run.method_path or run.method.name))
            if self.fresh and chosen is not None and chosen.source != FRESH:
                seeds = {"seeds": self.fresh, "first_seed": FIRST_FRESH_SEED, "race": False}
                grid = replace(self.grid, rates=(repr(float(chosen.rate)),), **seeds)
                found.append(grid.run(env, method))
        return found
