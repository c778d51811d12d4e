"""The command `leaderboard`: methods × tasks from recorded runs, after training what is asked for."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from splagger.cli.formatting import show
from splagger.cli.grid_options import Grid
from splagger.cli.launch_options import Where
from splagger.cli.options import EnvsOption, JobsOption, MethodOption, MethodsOption, OutputFolder
from splagger.cli.train_commands import Sweep
from splagger.errors import SettingError
from splagger.ranges import FreshSeeds

if TYPE_CHECKING:
    from splagger.runs.run import Run

Runs = Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")]

# Options of a grid whose runs keep the registered settings.
RANKED = ("--rates", "--seeds", "--first-seed", "--frames", "--race", "--snapshot-every", "--full")


@dataclass(frozen=True)
class Leaderboard:
    """Rank methods over tasks: scores between a random and a reference policy, with 95% intervals.

    Writes leaderboard.md, leaderboard.png and leaderboard.csv.

    Example: splagger leaderboard runs --methods splagger rnn amrl
    """

    runs: Runs = (Path("runs"),)
    """Run folders, or folders that contain run folders; --train writes to the first."""
    methods: MethodsOption = ()
    """The methods to rank, or import paths such as my_module:my_method; all that were run by default."""
    envs: EnvsOption = ()
    """The tasks; all that were run and have a known scale by default."""
    reference: MethodOption = None
    """The method that the others are compared with; splagger, if it was run and nothing else is given."""
    out: OutputFolder = Path("leaderboard")
    """Folder for the page, the figure and the CSV."""
    train: bool = False
    """First train the rates and seeds of all --methods on all --envs; finished runs are skipped."""
    fresh: FreshSeeds = 0
    """With --train: the number of fresh seeds that each method is then trained with, at its best rate."""
    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)
    jobs: JobsOption = None
    """With --train: experiments at a time. By default one, and several if NVIDIA's Multi-Process Service is running."""
    where: Annotated[Where, tyro.conf.arg(name="")] = field(default_factory=Where)

    def __call__(self) -> None:
        from splagger.report.leaderboard import (
            scores_table,
            standings_table,
            tasks_table,
            write_leaderboard,
        )
        from splagger.stats.leaderboard import leaderboard

        self._check()
        if self.train:
            self._train()
        methods = list(map(_registered_name, self.methods))
        reference = self.reference and _registered_name(self.reference)
        board = leaderboard(*self.runs, methods=methods, envs=self.envs, reference=reference)
        show(tasks_table(board))
        show(scores_table(board))
        show(standings_table(board))
        if board.left_out:
            print(f"\n  {board.left_out}")
        for path in write_leaderboard(board, self.out):
            print(path)

    def _check(self) -> None:
        """Raises a SettingError for options without an effect, before anything is trained."""
        from splagger.stats.evidence import Evidence

        given = self.grid.given()
        only = [*given, *["--fresh"] * bool(self.fresh), *["--jobs"] * (self.jobs is not None)]
        where, default = vars(self.where), Where()
        only += [f"--{n.replace('_', '-')}" for n, v in where.items() if v != getattr(default, n)]
        if only and not self.train:
            raise SettingError(f"{only[0]} has an effect only with --train")
        if self.train:
            self._check_ranked()
            for root in self.runs[1:]:
                Evidence.read_every(root)  # raises if there are no runs
        for option in given:
            if option not in RANKED:
                raise SettingError(
                    f"{option} makes runs that a leaderboard does not rank: scores belong to the registered settings; "
                    "train such runs by `splagger sweep`, and compare them by `splagger compare`"
                )

    def _check_ranked(self) -> None:
        """Raises a SettingError if what will be trained cannot be ranked."""
        from splagger.stats.ranked import scale_of, unscaled

        for env in self.envs:
            if scale_of(env) is None:
                raise SettingError(unscaled(env))
        methods = list(map(_registered_name, self.methods))
        if self.reference and _registered_name(self.reference) not in methods:
            raise SettingError(f"--reference {self.reference} is not one of --methods {methods}")

    def _train(self) -> None:
        from splagger.launchers import train_all

        sweep = {"envs": self.envs, "methods": self.methods, "grid": self.grid}
        Sweep(**sweep, out=self.runs[0], jobs=self.jobs, where=self.where)()
        train_all(self.fresh_runs(), self.runs[0], on=self.where.launcher(self.jobs))

    def fresh_runs(self) -> "list[Run]":
        """Returns the runs with fresh seeds, at the best rate of each method on each task, that do not exist yet."""
        from splagger.stats.evidence import Evidence, Series
        from splagger.stats.selection import FRESH

        evidence, found = Evidence.read(self.runs[0]), []
        for env, method in ((env, method) for env in self.envs for method in self.methods):
            run = self.grid.run(env, method)
            series = Series(run.row.name, run.method_path or run.method.name)
            chosen, rate = evidence.unbiased(series), evidence.best_rate(series)
            have = len(chosen.curves) if chosen is not None and chosen.source == FRESH else 0
            if chosen is not None and have < self.fresh:
                first = evidence.first_fresh_seed(series)
                seeds = {"seeds": self.fresh - have, "first_seed": first, "race": False}
                grid = replace(self.grid, rates=(repr(rate),), **seeds)
                found.append(grid.run(env, method))
        return found


def _registered_name(method: str) -> str:
    """Returns the name under which runs of a method are recorded: that of its row, if `method` is an alias."""
    from splagger.methods import ALIASES

    return ALIASES.get(method, method)
