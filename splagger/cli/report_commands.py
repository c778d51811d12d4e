"""Commands about recorded runs: plot, compare, figure, report, reproduce."""

import functools as ft
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from splagger.cli.formatting import show
from splagger.cli.launch_options import Where
from splagger.cli.options import (
    JobsOption,
    MethodOption,
    OptionalFile,
    OutputFile,
    OutputFolder,
    SecondsOption,
    WritableFile,
    check_exists,
)
from splagger.errors import RunError
from splagger.ranges import FreshSeeds
from splagger.runs.folder import SAVE_EVERY
from splagger.tables import Table, count, duration_in_words

Positional = tyro.conf.Positional
Runs = Annotated[
    Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN", help_behavior_hint="(required)")
]
Picture = Annotated[Path, WritableFile((".png", ".pdf", ".svg"))]
ANALYSES = Path("results/analysis")
CLAIMS = "claims"  # the forest plot of all claims
FigureName = Annotated[Positional[str], tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class Plot:
    """Draw the learning curves of runs, one panel per environment: one line per method and settings, at its best rate.

    Where available, uses seeds that were not used to choose the rate, otherwise the seeds of the sweep.

    Example: splagger plot runs/t-ls-demo -o curves.png
    """

    runs: Runs
    """Run folders, or folders that contain run folders."""
    output: Annotated[Picture, tyro.conf.arg(aliases=["-o"])] = Path("curves.png")
    """The file to write: PNG, PDF or SVG."""

    def __call__(self) -> None:
        from splagger.plots import plot

        plot(*self.runs, path=self.output)
        print(self.output)


@dataclass(frozen=True)
class Compare:
    """Compare methods: interquartile means with 95% intervals, and the probability that one beats another.

    Each method is reported at its best rate, on seeds on which the rate was not chosen where there are any.

    Example: splagger compare runs --reference rnn
    """

    runs: Runs
    """Run folders, or folders that contain run folders."""
    reference: MethodOption = None
    """The method to compare with; splagger, or the best, if not given."""
    csv: OptionalFile = None
    """Also write the numbers to this file."""

    def __call__(self) -> None:
        from splagger.files.storage import write_output, writing
        from splagger.report.tables import comparison_notes, comparison_tables
        from splagger.stats import compare

        found = compare(*self.runs, reference=self.reference)
        if self.csv:
            with writing(self.csv):
                write_output(self.csv, found.to_csv(index=False))
        for table in comparison_tables(found):
            show(table)
        for line in comparison_notes(found):
            print(f"\n  {line}")


@dataclass(frozen=True)
class Figure:
    """Draw the paper's figures from run folders, and list the commands that produce missing data.

    Example: splagger figure memory/t-ls --out figures
    """

    name: FigureName
    """A figure of the paper, one of its panels as FIGURE/PANEL, "claims" for all claims with intervals, or "all"."""
    runs: Path = Path("results")
    """Folder with run folders."""
    analyses: Path = ANALYSES
    """Folder with analyses."""
    out: OutputFolder = Path("figures")
    """Folder for NAME.png, NAME.pdf and NAME.csv."""

    def __call__(self) -> None:
        from splagger.paper.claims import evaluate_claims
        from splagger.paper.figures import select
        from splagger.paper.forest import save_claims
        from splagger.paper.reproduce import commands
        from splagger.plots.export import save
        from splagger.stats.evidence import Evidence

        figures = () if self.name == CLAIMS else select(self.name)
        if not self.runs.is_dir():
            wanted = "all" if self.name == CLAIMS else self.name
            raise RunError(
                f"there is no folder {self.runs}: recorded results are in the repository, not in the package. Name "
                f"their folder with --runs, or train them: splagger reproduce {wanted} --plan"
            )
        check_exists(self.analyses, "--analyses", ANALYSES)
        evidence = Evidence.read(self.runs, analyses=self.analyses)
        for figure in figures:
            paths = save(figure, evidence, self.out)
            print(f"{figure.name}: {' '.join(map(str, paths)) or 'nothing to draw'}")
            for command in commands(figure.missing(evidence), evidence, self.runs, self.analyses):
                print(f"  missing, made by: {command}")
        if self.name in (CLAIMS, "all"):
            paths = save_claims(evaluate_claims(evidence), self.out)
            print(f"{CLAIMS}: {' '.join(map(str, paths)) or 'nothing to draw'}")


@dataclass(frozen=True)
class Report:
    """Write one self-contained HTML page: figures, claims with verdicts, settings, and the provenance of each run."""

    runs: Path = Path("results")
    """Folder with run folders."""
    analyses: Path = ANALYSES
    """Folder with analyses."""
    output: Annotated[OutputFile, tyro.conf.arg(aliases=["-o"])] = Path("report.html")
    """The file to write."""

    def __call__(self) -> None:
        from splagger.files.storage import write_output, writing
        from splagger.paper.claims import evaluate_claims
        from splagger.paper.figures import ROWS
        from splagger.paper.reproduce import commands
        from splagger.report.page import report
        from splagger.report.tables import verdicts_table
        from splagger.stats.effort import effort
        from splagger.stats.evidence import Evidence

        evidence = Evidence.read(self.runs, analyses=self.analyses)
        if not evidence.runs and not (self.runs.is_dir() and self.analyses.is_dir()):
            raise RunError(
                f"no run folder in {self.runs}; `splagger reproduce all --plan` lists what to run"
            )
        check_exists(self.analyses, "--analyses", ANALYSES)
        folders = evidence, self.runs, self.analyses
        missing = {row.name: commands(row.missing(evidence), *folders) for row in ROWS}
        with writing(self.output):
            write_output(self.output, report(evidence, missing))
        show(verdicts_table(evaluate_claims(evidence)))
        print(f"\n{self.output}: {effort(evidence.runs).words()}")


@dataclass(frozen=True)
class Reproduce:
    """Train and analyze everything that the paper's figures lack, the shortest experiments first.

    Trains the paper's rates and seeds of each method, then fresh seeds at its best rate, and then runs the
    analyses. Finished experiments are left alone; interrupted ones continue.

    Example: splagger reproduce memory/t-ls --plan
    """

    name: FigureName
    """A figure of the paper, one of its panels as FIGURE/PANEL, or "all"."""
    out: OutputFolder = Path("results")
    """Folder with run folders."""
    analyses: Path = ANALYSES
    """Folder with analyses."""
    fresh: FreshSeeds = 10
    """Number of fresh seeds; 0 for none."""
    jobs: JobsOption = None
    """Experiments at a time. By default one, and several if NVIDIA's Multi-Process Service is running."""
    save_every: SecondsOption = SAVE_EVERY
    """Seconds between checkpoints."""
    where: Annotated[Where, tyro.conf.arg(name="")] = field(default_factory=Where)
    race: bool = False
    """Stop rates that are clearly behind at 10, 25 and 50% of training, instead of training all to the end."""
    plan: bool = False
    """Print what would be trained, and stop."""

    def __call__(self) -> None:
        from splagger.launchers import train_all
        from splagger.paper.figures import select
        from splagger.paper.reproduce import fresh_seeds, sweeps
        from splagger.report.tables import summary_table
        from splagger.stats.evidence import Evidence

        figures, folders, planned = select(self.name), [], 0
        launcher = self.where.launcher(self.jobs)
        read = lambda: Evidence.read(self.out, analyses=self.analyses)  # noqa: E731
        stages = (ft.partial(sweeps, race=self.race), ft.partial(fresh_seeds, seeds=self.fresh))
        for stage in stages:
            evidence = read()
            plans = stage(figures, evidence)  # the second stage depends on the runs of the first
            _print_plans(plans, evidence)
            planned += len(plans)
            if not self.plan:
                runs = [plan.run for plan in plans]
                folders += train_all(runs, self.out, save_every=self.save_every, on=launcher)
        if not planned:
            print(f"{self.name}: no runs are missing")
        if self.plan:
            return
        self._analyze(figures, read())
        if folders:
            show(summary_table(folders))
        print(f"\nsplagger figure {self.name} --runs {self.out} --analyses {self.analyses}")

    def _analyze(self, figures, evidence) -> None:
        from splagger.analysis import Options, analyze
        from splagger.paper.reproduce import analyzed_series

        keys = dict.fromkeys(k for figure in figures for k in figure.missing(evidence).analyses)
        for key in keys:
            series = analyzed_series(key)
            folders = evidence.folders(series) if series else []
            if series and not folders:
                print(f"{key.name} of {key.when} is not analyzed: {series.method} is not trained")
                continue
            options = Options(every_seed=bool(folders))
            try:
                for folder in analyze(key.name, folders[-1:], self.analyses, options):
                    print(folder / "values.csv")
            except RunError as error:  # published runs have no agents; continue with the others
                print(f"{key.name} of {key.when} is not analyzed: {error}")


def _print_plans(plans, evidence) -> None:
    """Prints the experiments, and how long they take on this device and on the reference device."""
    import jax

    from splagger.paper.durations import REFERENCE, seconds_of, total_of

    if not plans:
        return
    here = jax.devices()[0].device_kind
    devices = {f"here ({here})": here} | (
        {f"on one {REFERENCE}": REFERENCE} if here != REFERENCE else {}
    )
    seconds = {
        name: [seconds_of(plan, d, evidence) for plan in plans] for name, d in devices.items()
    }
    rows = [
        (
            plan.run.row.name,
            plan.run.method.name,
            f"{len(plan.run.points)}",
            f"{plan.run.frames / 1e6:g}M",
            plan.purpose,
            *(
                "unknown" if s[i] is None else f"about {duration_in_words(s[i])}"
                for s in seconds.values()
            ),
        )
        for i, plan in enumerate(plans)
    ]
    total = sum(plan.frames for plan in plans)
    title = f"{count(len(plans), 'experiment')}, {total / 1e6:,.0f} million frames"
    head = ("environment", "method", "runs", "frames each", "for")
    show(Table(title, (*head, *devices), rows))
    for name, found in seconds.items():
        known, unknown = total_of(found)
        if known:
            rest = f", without {count(unknown, 'experiment')} of unknown speed" if unknown else ""
            print(f"  {name}: about {duration_in_words(known)}{rest}")
