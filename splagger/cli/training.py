"""Commands that train: list, train, sweep, reproduce, bench."""

import functools as ft
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from splagger.cli.text import assignments, number, summary, table

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
    """Other settings, as ppo.NAME=VALUE, env.NAME=VALUE, network.NAME=VALUE or method.NAME=VALUE."""

    def run(self, env: str, method: str):
        from splagger.experiments.grid import Run
        from splagger.registry import PAPER_RATES

        paper = self.rates == ("paper",)
        return Run.create(
            env,
            method,
            rates=PAPER_RATES if paper else [number("--rates", text) for text in self.rates],
            seeds=range(self.first_seed, self.first_seed + self.seeds),
            frames=self.frames,
            episodes=self.episodes,
            overrides=assignments(self.set),
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
        table("Environments", ("name", "episodes", "frames", ""), rows)
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
        table("Methods", ("name", "encoder", "aggregator", "skip", "also called"), rows)


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
    """A method, see `splagger list`; or MODULE:NAME of one of your own."""
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
        frames = run.config.updates * run.row.ppo.batch
        if self.grid.frames is not None and frames != run.frames:
            print(
                f"{frames:,} frames: whole updates of {run.row.ppo.batch:,}, and whole evaluations"
            )
        folder, worked = execute(run, self.out, self.force, self.save_every)
        if not worked:
            print(
                f"finished before; nothing to do (--force starts over, more --frames extend): {folder.path}"
            )
        summary([folder])


@dataclass(frozen=True)
class Sweep:
    """Train several methods on several environments; finished ones are skipped."""

    envs: tuple[str, ...]
    """Environments, see `splagger list`."""
    methods: tuple[str, ...]
    """Methods, see `splagger list`."""
    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)
    out: Path = Path("runs")
    """Where run folders go."""
    save_every: float = 120.0
    """Seconds between checkpoints."""
    jobs: int = 1
    """How many experiments at a time; on one GPU that can pay under NVIDIA's Multi-Process Service."""

    def __call__(self) -> None:
        from splagger.experiments.side_by_side import train_all

        if not self.envs or not self.methods:
            raise ValueError("a sweep needs at least one of --envs and one of --methods")
        runs = {}
        for env in self.envs:  # all names are looked up before anything starts
            for method in self.methods:
                run = self.grid.run(env, method)
                runs[run.row.name, run.method.name] = run
        summary(train_all(list(runs.values()), self.out, self.jobs, self.save_every))


@dataclass(frozen=True)
class Reproduce:
    """Train and analyze all that the paper's figures lack, the shortest first.

    First the paper's rates and seeds of each method, then fresh seeds at its best rate, then analyses. What is
    finished is left alone, what was interrupted goes on.
    """

    name: Annotated[Positional[str], tyro.conf.arg(metavar="NAME")]
    """A figure of the paper, a panel of it as FIGURE/PANEL, or "all"."""
    out: Path = Path("results")
    """Where run folders are and go."""
    analyses: Path = Path("results/analysis")
    """Where analyses are and go."""
    fresh: int = 10
    """Number of fresh seeds; 0 for none."""
    jobs: int = 1
    """How many experiments at a time; on one GPU that can pay under NVIDIA's Multi-Process Service."""
    save_every: float = 120.0
    """Seconds between checkpoints."""
    plan: bool = False
    """Only tell what would be trained."""

    def __call__(self) -> None:
        from splagger.experiments.reproduce import fresh_seeds, sweeps
        from splagger.experiments.side_by_side import train_all
        from splagger.figures.evidence import Evidence
        from splagger.figures.paper import select

        if self.fresh < 0:
            raise ValueError(f"--fresh must be 0 or more, got {self.fresh}")
        figures, folders, planned = select(self.name), [], 0
        read = lambda: Evidence.read(self.out, analyses=self.analyses)  # noqa: E731
        for stage in (sweeps, ft.partial(fresh_seeds, seeds=self.fresh)):
            plans = stage(figures, read())  # the second rests on what the first has trained
            _tell(plans)
            planned += len(plans)
            if not self.plan:
                runs = [plan.run for plan in plans]
                folders += train_all(runs, self.out, self.jobs, self.save_every)
        if not planned:
            print(f"{self.name} lacks no run")
        if self.plan:
            return
        self._analyze(figures, read())
        if folders:
            summary(folders)
        print(f"\nsplagger figure {self.name} --runs {self.out} --analyses {self.analyses}")

    def _analyze(self, figures, evidence) -> None:
        from splagger.analysis import analyze
        from splagger.analysis.options import Options
        from splagger.experiments.reproduce import analyzed
        from splagger.recorded import RunError

        needs = dict.fromkeys(n for figure in figures for n in figure.missing(evidence).made)
        for need in needs:
            series = analyzed(need)
            folders = evidence.folders(series) if series else []
            if series and not folders:
                print(f"{need.name} of {need.when} is not analyzed: {series.method} is not trained")
                continue
            try:
                for folder in analyze(
                    need.name, folders[-1:], self.analyses, Options(every_seed=bool(folders))
                ):
                    print(folder / "values.csv")
            except RunError as error:  # published runs have no agents: that is no reason to stop
                print(f"{need.name} of {need.when} is not analyzed: {error}")


def _tell(plans) -> None:
    """The experiments that are to be run."""
    if not plans:
        return
    rows = [
        (
            plan.run.row.name,
            plan.run.method.name,
            f"{len(plan.run.points)}",
            f"{plan.run.frames / 1e6:g}M",
            plan.purpose,
        )
        for plan in plans
    ]
    total = sum(plan.frames for plan in plans)
    title = f"{len(plans)} experiments, {total / 1e6:,.0f} million frames"
    table(title, ("environment", "method", "runs", "frames each", "for"), rows)


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

        settings = assignments(self.set)
        result = measure(self.env, self.method, self.runs, self.blocks, settings)
        if self.json:
            print(json.dumps(result, indent=2))
            return
        rows = [
            (k.replace("_", " "), f"{v:,.1f}" if isinstance(v, float) else str(v))
            for k, v in result.items()
            if k != "provenance"
        ]
        table(f"{self.env} · {self.method} · {self.runs} runs", ("", ""), rows)
