"""Commands that train: train, sweep, bench."""

import itertools
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from splagger.cli.formatting import show
from splagger.cli.grid_options import Grid
from splagger.cli.launch_options import Where
from splagger.cli.options import AssignmentsOption, JobsOption, OutputFolder, SecondsOption
from splagger.errors import SettingError
from splagger.ranges import Count, Seeds
from splagger.runs.folder import SAVE_EVERY, RunFolder
from splagger.tables import Table, duration_in_words, lookup

Positional = tyro.conf.Positional


@dataclass(frozen=True)
class Train:
    """Train a method on an environment: all rates and seeds in one program.

    A finished run is left alone, an interrupted one continues from its last checkpoint, and a larger --frames extends a
    run, unless its rate is annealed, its memory is trained by reconstruction, or its rates race: other --frames are then
    another run. Ctrl-C saves before it stops.

    Example: splagger train t-ls splagger --rates 1e-3 --seeds 10 --set env.length=200
    """

    env: Annotated[Positional[str], tyro.conf.arg(metavar="ENV")]
    """An environment of `splagger list`, or gym:ID, gym:MODULE:FUNCTION, jax:MODULE:NAME, gymnax:ID,
    xland:ID/RULESETS."""
    method: Annotated[Positional[str], tyro.conf.arg(metavar="METHOD")]
    """A method of `splagger list`, or the import path MODULE:NAME of a custom method."""
    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)
    out: OutputFolder = Path("runs")
    """Folder for run folders."""
    force: bool = False
    """Delete the run and start over."""
    save_every: SecondsOption = SAVE_EVERY
    """Seconds between checkpoints."""

    def __call__(self) -> None:
        from splagger import hosts
        from splagger.report.tables import summary_table
        from splagger.training.announcements import announce
        from splagger.training.opening import already_finished
        from splagger.training.runner import execute

        hosts.join()
        run = self.grid.run(self.env, self.method)
        self.grid.print_notes(run)
        if self.force or not RunFolder(run.folder(self.out)).exists:
            announce(run)
        folder, worked = execute(run, self.out, self.force, self.save_every)
        if not hosts.is_first():
            return
        if not worked:
            print(already_finished(run, folder, "--force", "more --frames extend it"))
        show(summary_table([folder]))


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Train several methods on several environments; finished runs are skipped.

    Example: splagger sweep --envs t-ls t-latent --methods splagger rnn --vary env.length={50,100}
    """

    envs: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ENV [ENV ...]")]
    """Environments of `splagger list`, or other names that `splagger train` takes."""
    methods: Annotated[tuple[str, ...], tyro.conf.arg(metavar="METHOD [METHOD ...]")]
    """Methods of `splagger list`, or import paths."""
    vary: AssignmentsOption = ()
    """Settings with several values, as NAME=VALUE; there is one experiment per combination. Bash expands
    method.skip={0,0.5,1} to three of them."""
    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)
    out: OutputFolder = Path("runs")
    """Folder for run folders."""
    save_every: SecondsOption = SAVE_EVERY
    """Seconds between checkpoints."""
    jobs: JobsOption = None
    """Experiments at a time. By default one, and several if NVIDIA's Multi-Process Service is running."""
    where: Annotated[Where, tyro.conf.arg(name="")] = field(default_factory=Where)

    def __call__(self) -> None:
        from splagger.launchers import train_all
        from splagger.report.tables import summary_table
        from splagger.runs.settings import alternatives, assignments, combinations
        from splagger.training.announcements import announce

        if not self.envs or not self.methods:
            raise SettingError("a sweep needs at least one of --envs and one of --methods")
        for option, names in (("--envs", self.envs), ("--methods", self.methods)):
            if joined := [name for name in names if "," in name]:
                raise SettingError(f"{option} takes names separated by spaces, got {joined[0]!r}")
        varied = combinations(alternatives(self.vary), assignments(self.grid.set))
        _look_up(self.envs, self.methods)
        launcher, runs = self.where.launcher(self.jobs), {}
        # Two names of one method are one run.
        for env, method, values in itertools.product(self.envs, self.methods, varied):
            run = self.grid.run(env, method, values)
            runs[run.digest] = run
        self.grid.print_notes(*runs.values(), varied=varied[0])
        if self.where.on == "local":
            new = [r for r in runs.values() if not RunFolder(r.folder(self.out)).exists]
            announce(*new)
        folders = train_all(list(runs.values()), self.out, save_every=self.save_every, on=launcher)
        show(summary_table(folders))


def _look_up(envs: Iterable[str], methods: Iterable[str]) -> None:
    """Raises a SettingError that names all unknown environments and methods."""
    from splagger.bridges import resolve
    from splagger.methods import METHODS

    problems = []
    for env in envs:
        try:
            resolve(env)
        except SettingError as error:
            problems.append(str(error))
    for method in [method for method in methods if ":" not in method]:
        try:
            lookup(METHODS, method, "method")
        except SettingError as error:
            problems.append(str(error))
    if problems:
        raise SettingError(" | ".join(dict.fromkeys(problems)))


@dataclass(frozen=True)
class Bench:
    """Measure training speed: frames per second, compile time, peak memory.

    Example: splagger bench t-ls splagger --runs 15
    """

    env: Annotated[Positional[str], tyro.conf.arg(metavar="ENV")] = "t-ls"
    """An environment of `splagger list`."""
    method: Annotated[Positional[str], tyro.conf.arg(metavar="METHOD")] = "splagger"
    """A method of `splagger list`."""
    runs: Seeds = 1
    """Number of agents that train in one program."""
    blocks: Count = 3
    """Number of blocks of updates to time, after one warm-up block."""
    set: AssignmentsOption = ()
    """Other settings, as ppo.NAME=VALUE, env.NAME=VALUE or network.NAME=VALUE."""
    json: bool = False
    """Print JSON."""

    def __call__(self) -> None:
        from splagger.runs.settings import assignments
        from splagger.training.bench import measure

        settings = assignments(self.set)
        self._prepare(settings)
        result = measure(self.env, self.method, self.runs, self.blocks, settings)
        if self.json:
            print(json.dumps(result, indent=2))
            return
        rows = [
            (name.replace("_", " "), f"{value:,.1f}" if isinstance(value, float) else str(value))
            for name, value in result.items()
            if name != "provenance" and value is not None
        ]
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        show(Table(f"{self.env} · {self.method} · {runs}", ("", ""), rows))

    def _prepare(self, settings: dict[str, str]) -> None:
        """Prints how long it takes on a CPU, and lets Ctrl-C end the process at once: nothing has to be saved."""
        import signal

        import jax

        from splagger.ppo.duration import estimated_seconds
        from splagger.runs.run import Run

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        run = Run.create(self.env, self.method, overrides=settings, rates=[1e-3], seeds=self.runs)
        blocks = run.config.updates / run.config.ppo.eval_interval
        seconds = estimated_seconds(run.config, self.runs) * (1 + self.blocks) / blocks
        if jax.default_backend() == "cpu" and seconds > 60:
            print(f"about {duration_in_words(seconds)} here", file=sys.stderr)
