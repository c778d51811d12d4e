"""The command line. No numerics here: every command calls the library, and imports it only when it runs."""

import contextlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from splagger.analysis.options import Options

Positional = tyro.conf.Positional


@dataclass(frozen=True)
class Grid:
    """Which members the sweep has: all combinations train in one program."""

    rates: tuple[str, ...] = ("paper",)
    """Learning rates, or "paper" for 3e-3 1e-3 3e-4 1e-4 3e-5."""
    seeds: int = 3
    """Number of seeds: 0, 1, …"""
    first_seed: int = 0
    """The first of them."""
    frames: float | None = None
    """Environment steps of each run; the environment's own number if not given."""
    episodes: int | None = None
    """Episodes of a task; the environment's own number if not given."""
    entropy_weights: tuple[float, ...] = ()
    """Entropy weights to sweep."""
    kl_weights: tuple[float, ...] = ()
    """KL weights to sweep (PEARL)."""
    temperatures: tuple[float, ...] = ()
    """Initial temperatures to sweep (softmax aggregators)."""
    set: tuple[str, ...] = ()
    """Other settings, as ppo.NAME=VALUE, env.NAME=VALUE or network.NAME=VALUE."""

    def run(self, env: str, method: str):
        from splagger.experiments.grid import Run
        from splagger.registry import PAPER_RATES

        paper = self.rates == ("paper",)
        return Run.create(
            env,
            method,
            rates=PAPER_RATES if paper else [_number("--rates", text) for text in self.rates],
            seeds=range(self.first_seed, self.first_seed + self.seeds),
            frames=self.frames,
            episodes=self.episodes,
            overrides=dict(_assignment(text) for text in self.set),
            entropy_weights=self.entropy_weights,
            kl_weights=self.kl_weights,
            temperatures=self.temperatures,
        )


@dataclass(frozen=True)
class List:
    """Show the environments and methods that there are."""

    json: bool = False
    """As JSON, for programs."""

    def __call__(self) -> None:
        from splagger.methods import ALIASES, METHODS
        from splagger.registry import ENVS

        if self.json:
            envs = {
                name: {"summary": r.summary, "episodes": r.episodes, "frames": r.frames}
                for name, r in ENVS.items()
            }
            print(
                json.dumps(
                    {"environments": envs, "methods": sorted(METHODS), "aliases": ALIASES}, indent=2
                )
            )
            return
        rows = [(n, f"{r.episodes}", f"{r.frames / 1e6:g}M", r.summary) for n, r in ENVS.items()]
        _table("Environments", ("name", "episodes", "frames", ""), rows)
        print("  and anybody's: gym:ID, gym:MODULE:FUNCTION, jax:MODULE:NAME, gymnax:ID")
        same = {name: alias for alias, name in ALIASES.items()}
        rows = [
            (
                n,
                m.encoder,
                type(m.aggregator).__name__ if m.skip < 1 else "none",
                f"{m.skip:g}",
                same.get(n, ""),
            )
            for n, m in METHODS.items()
            if n not in ALIASES
        ]
        _table("Methods", ("name", "encoder", "aggregator", "skip", "also called"), rows)


@dataclass(frozen=True)
class Train:
    """Train a method on an environment: all rates and seeds in one program.

    A finished run is left alone, an interrupted one goes on from its last checkpoint, and more --frames
    extend it. Ctrl-C saves first.
    """

    env: Annotated[Positional[str], tyro.conf.arg(metavar="ENV")]
    """An environment, see `splagger list`; gym:ID or gym:MODULE:FUNCTION of Gymnasium's, jax:MODULE:NAME or
    gymnax:ID of JAX's."""
    method: Annotated[Positional[str], tyro.conf.arg(metavar="METHOD")]
    """A method, see `splagger list`."""
    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)
    out: Path = Path("runs")
    """Where run folders go."""
    force: bool = False
    """Start over, and drop what was there."""
    save_every: float = 120.0
    """Seconds between checkpoints."""

    def __call__(self) -> None:
        from splagger.experiments.runner import execute

        run = self.grid.run(self.env, self.method)
        folder, worked = execute(run, self.out, self.force, self.save_every)
        if not worked:
            print(
                f"finished before; nothing to do (--force starts over, more --frames extend): {folder.path}"
            )
        _summary([folder])


@dataclass(frozen=True)
class Sweep:
    """Train several methods on several environments, one after another; finished ones are skipped."""

    envs: tuple[str, ...]
    """Environments, see `splagger list`."""
    methods: tuple[str, ...]
    """Methods, see `splagger list`."""
    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)
    out: Path = Path("runs")
    """Where run folders go."""
    save_every: float = 120.0
    """Seconds between checkpoints."""

    def __call__(self) -> None:
        from splagger.experiments.runner import execute

        runs = {}
        for env in self.envs:  # all names are looked up before anything starts
            for method in self.methods:
                run = self.grid.run(env, method)
                runs[run.row.name, run.method.name] = run
        _summary([execute(run, self.out, save_every=self.save_every)[0] for run in runs.values()])


@dataclass(frozen=True)
class Evaluate:
    """Measure a trained agent on fresh tasks: return per episode with its 95% interval."""

    run: Annotated[Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run folder."""
    tasks: int = 1000
    """Number of tasks, one meta-episode each."""
    rate: float | None = None
    """Of which rate; the best if not given."""
    seed: int | None = None
    """Of which seed; the best if not given."""

    def __call__(self) -> None:
        from splagger.experiments import api

        player = api.load(self.run, self.rate, self.seed)
        episodes, total = api.evaluate(player, self.tasks)
        rows = [
            (f"episode {k}", f"{s.mean:.3f} ± {s.margin:.3f}") for k, s in enumerate(episodes, 1)
        ]
        rows.append(("meta-episode", f"{total.mean:.3f} ± {total.margin:.3f}"))
        title = f"{self.tasks} tasks, rate {player.point.rate:g}, seed {player.point.seed}"
        _table(title, ("", "return, 95% interval"), rows)


@dataclass(frozen=True)
class Watch:
    """Write a GIF of a trained agent living through a meta-episode."""

    run: Annotated[Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run folder."""
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
    """Draw the learning curves of run folders of one environment, each at its best rate."""

    runs: Annotated[Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")]
    """Run folders, or folders that hold some."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("curves.png")
    """The file to write: PNG, PDF or SVG."""

    def __call__(self) -> None:
        from splagger.experiments.records import RunError, find
        from splagger.experiments.summary import plot

        folders = [folder for root in self.runs for folder in find(root)]
        if not folders:
            raise RunError(f"no run folder in {', '.join(map(str, self.runs))}")
        plot(folders, self.output)
        print(self.output)


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
            for command in commands(figure.missing(evidence), self.runs, self.analyses):
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
        tell = {name: commands(m, self.runs, self.analyses) for name, m in missing.items()}
        self.output.write_text(report(evidence, tell))
        verdicts = [(verdict.outcome, claim.sentence) for claim, verdict in judged(evidence)]
        decided = [row for row in verdicts if row[0] != UNKNOWN]
        _table(f"{len(decided)} of {len(verdicts)} claims can be judged", ("", ""), decided)
        print(f"\n{self.output}: {len(evidence.runs)} runs")


@dataclass(frozen=True)
class Analyse:
    """Look into memories, fresh or trained: gradients, permutations, beliefs, and what is remembered."""

    name: Annotated[Positional[str], tyro.conf.arg(metavar="NAME")]
    """gradient-first, gradient-parameters, gradient-inputs, permutation, pearl-variance, memory, or all."""
    run: tuple[Path, ...] = ()
    """Run folders whose agents to analyze; fresh agents if none are given."""
    out: Path = Path("results/analysis")
    """Where the numbers go: NAME/initialization or NAME/ENV below it."""
    options: Annotated[Options, tyro.conf.arg(name="")] = field(default_factory=Options)

    def __call__(self) -> None:
        from splagger.analysis import analyze
        from splagger.figures.memory import draw_memory

        for folder in analyze(self.name, self.run, self.out, self.options):
            print(folder / "values.csv")
            if folder.parent.name == "memory":
                for picture in draw_memory(folder):
                    print(picture)


@dataclass(frozen=True)
class Bench:
    """Measure training speed: frames a second, compile time, peak memory."""

    env: Annotated[Positional[str], tyro.conf.arg(metavar="ENV")] = "t-ls"
    """An environment, see `splagger list`."""
    method: Annotated[Positional[str], tyro.conf.arg(metavar="METHOD")] = "splagger"
    """A method, see `splagger list`."""
    runs: int = 1
    """Agents trained side by side in one program."""
    blocks: int = 3
    """Blocks of updates to time, after one to warm up."""
    set: tuple[str, ...] = ()
    """Other settings, as ppo.NAME=VALUE, env.NAME=VALUE or network.NAME=VALUE."""
    json: bool = False
    """As JSON, for programs."""

    def __call__(self) -> None:
        from splagger.experiments.bench import measure

        settings = dict(_assignment(text) for text in self.set)
        result = measure(self.env, self.method, self.runs, self.blocks, settings)
        if self.json:
            print(json.dumps(result, indent=2))
            return
        rows = [
            (k.replace("_", " "), f"{v:,.1f}" if isinstance(v, float) else str(v))
            for k, v in result.items()
            if k != "provenance"
        ]
        _table(f"{self.env} · {self.method} · {self.runs} runs", ("", ""), rows)


Command = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Sweep, tyro.conf.subcommand("sweep")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Watch, tyro.conf.subcommand("watch")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Figure, tyro.conf.subcommand("figure")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Analyse, tyro.conf.subcommand("analyse")]
    | Annotated[Analyse, tyro.conf.subcommand("analyze")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line. Bad input ends with one clear line and exit code 2."""
    command: Any = tyro.cli(
        Command,
        prog="splagger",
        description="Meta-reinforcement learning whose memory is a commutative monoid.",
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    with _clear_errors():
        command()


@contextlib.contextmanager
def _clear_errors():
    """What the user can mend is told in one line; everything else is a bug and shows its traceback."""
    from splagger.experiments.records import RunError
    from splagger.experiments.runner import Interrupted

    try:
        yield
    except (ValueError, RunError, OSError) as error:
        print(f"splagger: {error}", file=sys.stderr)
        sys.exit(2)
    except Interrupted:
        print("\nsplagger: stopped and saved; the same command goes on from here", file=sys.stderr)
        sys.exit(130)
    except KeyboardInterrupt:
        print(
            "\nsplagger: stopped; the same command goes on from the last checkpoint",
            file=sys.stderr,
        )
        sys.exit(130)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} takes numbers or 'paper', got {text!r}") from None


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set takes NAME=VALUE, got {text!r}")
    return name, value


def _table(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as their widest entry; plain text, so that it can be piped."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows] if any(head) else rows:
        print(
            "  "
            + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )


def _summary(folders: list) -> None:
    """One line a run folder: the best rate by mean return over training, and where its agents ended."""
    from splagger.experiments.summary import summarize

    rows = [summarize(folder) for folder in folders]
    _table(
        "Results",
        ("environment", "method", "best rate", "mean return", "final return", "frames/s", "folder"),
        rows,
    )
