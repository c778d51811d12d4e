"""Commands that look at what was trained: evaluate, export, watch, plot, compare, figure, report, analyse."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from splagger.analysis.options import Options
from splagger.cli.text import table

Positional = tyro.conf.Positional


@dataclass(frozen=True)
class Evaluate:
    """Measure a trained agent on fresh tasks: return per episode with its 95% interval."""

    run: Annotated[Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run folder, or a file of `splagger export`."""
    tasks: int = 1000
    """Number of tasks, one meta-episode each."""
    rate: float | None = None
    """Of which rate; the best if not given."""
    seed: int | None = None
    """Of which seed; the best if not given."""
    every_seed: bool = False
    """All seeds of the best agent's rate, each alone and their mean with its interval over seeds."""

    def __call__(self) -> None:
        from splagger.experiments import api

        if self.every_seed:
            self._all()
            return
        player = api.load(self.run, self.rate, self.seed)
        episodes, total = api.evaluate(player, self.tasks)
        rows = [
            (f"episode {k}", f"{s.mean:.3f} ± {s.margin:.3f}") for k, s in enumerate(episodes, 1)
        ]
        rows.append(("meta-episode", f"{total.mean:.3f} ± {total.margin:.3f}"))
        title = f"{self.tasks} tasks, rate {player.point.rate:g}, seed {player.point.seed}"
        table(title, ("", "return, 95% interval"), rows)

    def _all(self) -> None:
        import numpy as np

        from splagger.experiments import api
        from splagger.experiments.loading import load_seeds
        from splagger.figures.stats import estimate

        if self.rate is not None or self.seed is not None:
            raise ValueError("--every-seed is of the best rate; it takes no --rate and no --seed")
        players = load_seeds(self.run)
        scores = [api.evaluate(player, self.tasks)[1] for player in players]
        rows = [
            (f"seed {player.point.seed}", f"{s.mean:.3f} ± {s.margin:.3f}")
            for player, s in zip(players, scores, strict=True)
        ]
        mean = estimate(lambda x: x.mean(axis=-1), np.array([s.mean for s in scores]))
        rows.append(("mean of seeds", f"{mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}]"))
        title = f"{self.tasks} tasks, rate {players[0].point.rate:g}, {len(players)} seeds"
        table(title, ("", "return of a meta-episode, 95% interval"), rows)


@dataclass(frozen=True)
class Export:
    """Write one trained agent into one file, which `evaluate`, `watch`, `analyse` and splagger.load read anywhere."""

    run: Annotated[Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run folder."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("agent.npz")
    """The file to write."""
    rate: float | None = None
    """Of which rate; the best if not given."""
    seed: int | None = None
    """Of which seed; the best if not given."""

    def __call__(self) -> None:
        from splagger.experiments import api

        player = api.load(self.run, self.rate, self.seed)
        api.save_agent(player, self.output)
        size = self.output.stat().st_size / 1e6
        print(f"{self.output}: rate {player.point.rate:g}, seed {player.point.seed}, {size:.1f} MB")


@dataclass(frozen=True)
class Watch:
    """Write a GIF of a trained agent living through a meta-episode."""

    run: Annotated[Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run folder, or a file of `splagger export`."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("watch.gif")
    """The file to write."""
    task_seed: int = 0
    """Which task."""
    rate: float | None = None
    """Of which rate; the best if not given."""
    seed: int | None = None
    """Of which seed; the best if not given."""

    def __call__(self) -> None:
        from splagger.experiments import api

        earned = api.watch(api.load(self.run, self.rate, self.seed), self.output, self.task_seed)
        print(f"{self.output}: a meta-episode that earned {earned:.2f}")


@dataclass(frozen=True)
class Plot:
    """Draw the learning curves of one environment: a line for each method with its settings, at its best rate.

    What is drawn are seeds that the rate was not chosen on where there are some; else those it was chosen on.
    """

    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")]
    """Run folders, or folders that hold some."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("curves.png")
    """The file to write: PNG, PDF or SVG."""

    def __call__(self) -> None:
        from splagger.experiments.summary import plot

        plot(*self.runs, path=self.output)
        print(self.output)


@dataclass(frozen=True)
class Compare:
    """Compare methods on any environment: interquartile means with 95% intervals, and who earns more how likely.

    Each is reported at its best rate, on seeds that the rate was not chosen on where there are some.
    """

    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")]
    """Run folders, or folders that hold some."""
    reference: str | None = None
    """The method that the others are compared with; splagger, or the best, if not given."""
    csv: Path | None = None
    """Also write the numbers into this file."""

    def __call__(self) -> None:
        from splagger.figures.compare import compare, text

        found = compare(*self.runs, reference=self.reference)
        if self.csv:
            found.to_csv(self.csv, index=False)
        for title, head, rows in text(found):
            table(title, head, rows)
        print(
            "\n  seeds: fresh or held out, that the rate was not chosen on; same, that it was chosen on"
        )


@dataclass(frozen=True)
class Figure:
    """Draw the paper's figures from run folders, and tell the commands that make what is missing."""

    name: Annotated[Positional[str], tyro.conf.arg(metavar="NAME")]
    """A figure of the paper, a panel of it as FIGURE/PANEL, or "all"."""
    runs: Path = Path("results")
    """Where run folders are."""
    analyses: Path = Path("results/analysis")
    """Where analyses are."""
    out: Path = Path("figures")
    """Where NAME.png, NAME.pdf and NAME.csv go."""

    def __call__(self) -> None:
        from splagger.experiments.reproduce import commands
        from splagger.figures import export
        from splagger.figures.evidence import Evidence
        from splagger.figures.paper import select

        evidence = Evidence.read(self.runs, analyses=self.analyses)
        for figure in select(self.name):
            paths = export.save(figure, evidence, self.out)
            print(f"{figure.name}: {' '.join(map(str, paths)) or 'nothing to draw'}")
            for command in commands(figure.missing(evidence), evidence, self.runs, self.analyses):
                print(f"  missing, made by: {command}")


@dataclass(frozen=True)
class Report:
    """Write one self-contained HTML page: figures, claims with verdicts, settings, and how each run was made."""

    runs: Path = Path("results")
    """Where run folders are."""
    analyses: Path = Path("results/analysis")
    """Where analyses are."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report.html")
    """The file to write."""

    def __call__(self) -> None:
        from splagger.experiments.reproduce import commands
        from splagger.figures.claims import judged
        from splagger.figures.evidence import Evidence
        from splagger.figures.paper import ROWS
        from splagger.figures.report import report
        from splagger.figures.verdicts import UNKNOWN
        from splagger.recorded import RunError

        evidence = Evidence.read(self.runs, analyses=self.analyses)
        if not evidence.runs and not self.analyses.is_dir():
            raise RunError(f"no run folder in {self.runs}; `splagger figure all` tells what to run")
        missing = {row.name: row.missing(evidence) for row in ROWS}
        places = evidence, self.runs, self.analyses
        tell = {name: commands(m, *places) for name, m in missing.items()}
        self.output.write_text(report(evidence, tell))
        verdicts = [(verdict.outcome, claim.sentence) for claim, verdict in judged(evidence)]
        decided = [row for row in verdicts if row[0] != UNKNOWN]
        table(f"{len(decided)} of {len(verdicts)} claims can be judged", ("", ""), decided)
        print(f"\n{self.output}: {len(evidence.runs)} runs")


@dataclass(frozen=True)
class Analyse:
    """Look into memories, fresh or trained: gradients, permutations, beliefs, what is remembered, and adaptation within a task."""

    name: Annotated[Positional[str], tyro.conf.arg(metavar="NAME")]
    """gradient-first, gradient-parameters, gradient-inputs, permutation, pearl-variance, memory, adaptation, or all."""
    run: tuple[Path, ...] = ()
    """Run folders or files of `splagger export` whose agents to analyze; fresh agents if none are given."""
    out: Path = Path("results/analysis")
    """Where the numbers go: NAME/initialization or NAME/ENV below it."""
    force: bool = False
    """Replace an analysis that was made with other options."""
    options: Annotated[Options, tyro.conf.arg(name="")] = field(default_factory=Options)

    def __call__(self) -> None:
        from splagger.analysis import analyze
        from splagger.figures.adaptation import draw_adaptation
        from splagger.figures.memory import draw_memory

        pictures = {"memory": draw_memory, "adaptation": draw_adaptation}
        for folder in analyze(self.name, self.run, self.out, self.options, self.force):
            print(folder / "values.csv")
            draw = pictures.get(folder.parent.name, lambda folder: [])
            for picture in draw(folder):
                print(picture)
