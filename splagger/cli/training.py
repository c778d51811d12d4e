"""Commands that train: list, train, sweep, bench."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from splagger.cli.text import assignment, number, summary, table

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
            rates=PAPER_RATES if paper else [number("--rates", text) for text in self.rates],
            seeds=range(self.first_seed, self.first_seed + self.seeds),
            frames=self.frames,
            episodes=self.episodes,
            overrides=dict(assignment(text) for text in self.set),
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
        summary([folder])


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
        summary([execute(run, self.out, save_every=self.save_every)[0] for run in runs.values()])


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

        settings = dict(assignment(text) for text in self.set)
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
