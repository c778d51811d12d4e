"""Commands about trained agents: evaluate, export, watch, analyse."""

import functools as ft
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splagger.analysis.options import OUT, Options
from splagger.cli.formatting import show, size_of
from splagger.cli.options import (
    AssignmentsOption,
    EpisodesOption,
    FramesSoFarOption,
    OutputFolder,
    RateOption,
    SeedOption,
    WritableFile,
)
from splagger.errors import RunError, SettingError
from splagger.ranges import Several, TaskSeed
from splagger.tables import Table

if TYPE_CHECKING:
    from splagger.agents import Player

Positional = tyro.conf.Positional
RunPath = Annotated[Positional[Path], tyro.conf.arg(metavar="RUN")]
Trust = Annotated[
    bool,
    tyro.conf.arg(
        help="Import and call what the run names, if its environment or method is not part of splagger."
    ),
]
At = Annotated[
    FramesSoFarOption,
    tyro.conf.arg(
        help="Take the snapshot nearest to this number of frames (see `train --snapshot-every`), not the last agent."
    ),
]


@dataclass(frozen=True)
class OtherEnv:
    """The agent's environment, if it is not that of training."""

    env: str | None = None
    """Another environment of the same observations and actions, as for `train`; by default that of training."""
    set: AssignmentsOption = ()
    """Other settings of the environment than in training, as env.NAME=VALUE."""
    episodes: EpisodesOption = None
    """Episodes per task; by default as in training."""

    def of(self, player: "Player") -> "Player":
        """Returns the agent in this environment."""
        from splagger.runs.settings import env_settings

        if not self.set and self.episodes is None and self.env is None:
            return player
        return player.with_env(self.episodes, self.env, env_settings(self.set))


Elsewhere = Annotated[OtherEnv, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a trained agent on new tasks: return per episode with its 95% interval."""

    run: RunPath
    """A run folder, a file written by `splagger export`, or the name of an agent in the zoo."""
    tasks: Several = 1000
    """Number of tasks, one meta-episode each."""
    rate: RateOption = None
    """Learning rate of the agent; by default that of the agent with the highest final return."""
    seed: SeedOption = None
    """Seed of the agent; by default that of the agent with the highest final return."""
    every_seed: bool = False
    """Evaluate all seeds of the best agent's rate; also print their mean with its interval over seeds."""
    every_snapshot: bool = False
    """Evaluate the agent at each of its snapshots (see `train --snapshot-every`): how it learned."""
    explore: bool = False
    """Sample actions, as in training, instead of taking the most likely ones."""
    at: At = None
    trust: Trust = False
    elsewhere: Elsewhere = field(default_factory=OtherEnv)

    def __call__(self) -> None:
        from splagger.agents import evaluate, load

        if self.every_snapshot:
            self._every_snapshot()
            return
        if self.every_seed:
            self._every_seed()
            return
        player = self.elsewhere.of(
            load(self.run, self.rate, self.seed, trust=self.trust, at=self.at)
        )
        episodes, total = evaluate(player, self.tasks, explore=self.explore)
        rows = [(f"episode {k}", str(score)) for k, score in enumerate(episodes, 1)]
        rows.append(("meta-episode", str(total)))
        title = f"{self.tasks} tasks, {_which(player)}"
        show(Table(title, ("", "return, 95% interval"), rows))

    def _every_snapshot(self) -> None:
        from splagger.agents import evaluate, load, snapshots

        if self.every_seed or self.at is not None:
            other = "--every-seed" if self.every_seed else "--at"
            raise SettingError(
                f"--every-snapshot evaluates all snapshots of one agent; it takes no {other}"
            )
        chosen: dict[str, Any] = {"rate": self.rate, "seed": self.seed}
        scores, failed = {}, {}
        for at in snapshots(self.run) or [0]:  # without snapshots, `load` says how to make them
            try:
                player = load(self.run, trust=self.trust, at=at, **chosen)
            except RunError as error:  # damaged, or diverged by then
                failed[at] = error
                continue
            chosen = player.point._asdict()  # the same agent in all rows, also while it trains
            if player.at == at:  # otherwise, a race had stopped it
                player = self.elsewhere.of(player)
                scores[at] = evaluate(player, self.tasks, explore=self.explore)
        if not scores:
            raise next(iter(failed.values()))
        episodes = len(next(iter(scores.values()))[0])
        rows = {at: (*map(str, parts), str(total)) for at, (parts, total) in scores.items()}
        rows |= {at: (*[""] * episodes, f"not evaluated: {failed[at]}") for at in failed}
        names = [f"episode {k}" for k in range(1, episodes + 1)]
        title = f"{self.tasks} tasks, rate {chosen['rate']:g}, seed {chosen['seed']}: return, 95% interval"
        cells = [(f"{at:,}", *rows[at]) for at in sorted(rows)]
        show(Table(title, ("frames", *names, "meta-episode"), cells))

    def _every_seed(self) -> None:
        import numpy as np

        from splagger.agents import evaluate, load_seeds
        from splagger.stats.estimates import estimate, interval

        if self.rate is not None or self.seed is not None:
            raise SettingError("--every-seed evaluates the best rate; it takes no --rate or --seed")
        found = load_seeds(self.run, self.trust, self.at)
        players = [self.elsewhere.of(player) for player in found]
        scores = [evaluate(player, self.tasks, explore=self.explore)[1] for player in players]
        rows = [
            (f"seed {player.point.seed}", str(score))
            for player, score in zip(players, scores, strict=True)
        ]
        run, path = players[0].run, players[0].path
        if run is not None and path is not None and path.is_dir():
            left = sorted(set(run.seeds) - {player.point.seed for player in players})
            rows += [(f"seed {seed}", "diverged, not evaluated") for seed in left]
        mean = estimate(lambda x: x.mean(axis=-1), np.array([s.mean for s in scores]))
        rows.append(("mean of seeds", interval(mean, ".3f")))
        seeds = f"rate {players[0].point.rate:g}, {len(players)} seeds{_age(players[0])}"
        title = f"{self.tasks} tasks, {seeds}"
        show(Table(title, ("", "return per meta-episode, 95% interval"), rows))


@dataclass(frozen=True)
class Export:
    """Write one trained agent to a file that `evaluate`, `watch`, `analyse` and splagger.load can read."""

    run: RunPath
    """A run folder, or the name of an agent in the zoo."""
    output: Annotated[Path, WritableFile((".npz",)), tyro.conf.arg(aliases=["-o"])] = Path(
        "agent.npz"
    )
    """The file to write."""
    rate: RateOption = None
    """Learning rate of the agent; by default that of the agent with the highest final return."""
    seed: SeedOption = None
    """Seed of the agent; by default that of the agent with the highest final return."""
    half: bool = False
    """Store the parameters in half precision (float16), which halves the file. Agents compute in float32."""
    at: At = None
    trust: Trust = False

    def __call__(self) -> None:
        from splagger.agents import load, save_agent

        player = load(self.run, self.rate, self.seed, trust=self.trust, at=self.at)
        save_agent(player, self.output, self.half)
        print(f"{self.output}: {_which(player)}, {size_of(self.output)}")


@dataclass(frozen=True)
class Watch:
    """Write a GIF of a trained agent that plays one meta-episode."""

    run: RunPath
    """A run folder, a file written by `splagger export`, or the name of an agent in the zoo."""
    output: Annotated[Path, WritableFile((".gif",)), tyro.conf.arg(aliases=["-o"])] = Path(
        "watch.gif"
    )
    """The file to write."""
    task_seed: TaskSeed = 0
    """Seed of the task."""
    rate: RateOption = None
    """Learning rate of the agent; by default that of the agent with the highest final return."""
    seed: SeedOption = None
    """Seed of the agent; by default that of the agent with the highest final return."""
    at: At = None
    trust: Trust = False
    elsewhere: Elsewhere = field(default_factory=OtherEnv)

    def __call__(self) -> None:
        from splagger.agents import load, watch

        player = self.elsewhere.of(
            load(self.run, self.rate, self.seed, trust=self.trust, at=self.at)
        )
        total = watch(player, self.output, self.task_seed)
        print(f"{self.output}: a meta-episode with a return of {total:.2f}{_age(player)}")


@dataclass(frozen=True)
class AnalysisOptions(Options):
    """Options of an analysis, of which one is written as on the command line."""

    at: FramesSoFarOption = None
    """Trained agents: take the snapshots nearest to this number of frames (see `train --snapshot-every`)."""


@dataclass(frozen=True)
class Analyse:
    """Analyze untrained or trained memories: gradients, permutations, beliefs, contents, adaptation within a task."""

    name: Annotated[Positional[str], tyro.conf.arg(metavar="NAME")]
    """gradient-first, gradient-parameters, gradient-inputs, permutation, pearl-variance, memory, adaptation, or all."""
    run: tuple[Path, ...] = ()
    """Run folders, files written by `splagger export` or names of agents in the zoo; by default untrained agents."""
    out: OutputFolder = Path(OUT)
    """Folder for the numbers: NAME/initialization or NAME/ENV below it."""
    force: bool = False
    """Replace an analysis that was made with other options."""
    trust: Trust = False
    options: Annotated[AnalysisOptions, tyro.conf.arg(name="")] = field(
        default_factory=AnalysisOptions
    )

    def __call__(self) -> None:
        from splagger.analysis import analyze
        from splagger.plots import draw_adaptation, draw_analysis, draw_memory

        pictures = {"memory": draw_memory, "adaptation": draw_adaptation}
        note = ft.partial(print, file=sys.stderr, flush=True)
        options = Options(**vars(self.options))
        folders = analyze(self.name, self.run, self.out, options, self.force, self.trust, note)
        for folder in folders:
            print(folder / "values.csv")
            draw = pictures.get(folder.parent.name, draw_analysis)
            for picture in draw(folder):
                print(picture)


def _which(player: "Player") -> str:
    """Returns which agent of a run this is, as titles show it."""
    return f"rate {player.point.rate:g}, seed {player.point.seed}{_age(player)}"


def _age(player: "Player") -> str:
    return "" if player.at is None else f", at {player.at:,} frames"
