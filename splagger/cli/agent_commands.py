"""Commands about trained agents: export, watch, analyse."""

import functools as ft
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from splagger.analysis.options import OUT, Options
from splagger.cli.formatting import size_of
from splagger.cli.options import (
    AssignmentsOption,
    EnvOption,
    EpisodesOption,
    FramesSoFarOption,
    MethodsOption,
    OutputFolder,
    RateOption,
    SeedOption,
    WritableFile,
    written,
)
from splagger.ranges import Moderate, TaskSeed

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
    MethodsOption,
    tyro.conf.arg(
        help="Take the snapshot nearest to this number of frames (see `train --snapshot-every`), not the last agent."
    ),
]


@dataclass(frozen=True)
class OtherEnv:
    """The agent's environment, if it is not that of training."""

    env: EnvOption = None
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


@dataclass(frozen=True)
class Member:
    """One agent of a run."""

    rate: RateOption = None
    """Learning rate of the agent; by default that of the agent with the highest final return."""
    seed: SeedOption = None
    """Seed of the agent; by default that of the agent with the highest final return."""
    at: At = None
    trust: Trust = False

    def load(self, path: Path) -> "Player":
        """Returns this agent of the run at `path`."""
        from splagger.agents import load

        return load(path, self.rate, self.seed, trust=self.trust, at=self.at)


Elsewhere = Annotated[OtherEnv, tyro.conf.arg(name="")]
Chosen = Annotated[Member, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class Export:
    """Write one trained agent to a file that `evaluate`, `watch`, `analyse` and splagger.load can read.

    Example: splagger export runs/t-ls-demo/splagger -o agent.npz
    """

    run: RunPath
    """A run folder, or the name of an agent in the zoo."""
    output: Annotated[Path, WritableFile((".npz",)), tyro.conf.arg(aliases=["-o"])] = Path(
        "agent.npz"
    )
    """The file to write."""
    member: Chosen = field(default_factory=Member)
    half: bool = False
    """Store the parameters in half precision (float16), which halves the file. Agents compute in float32."""

    def __call__(self) -> None:
        from splagger.agents import save_agent

        player = self.member.load(self.run)
        save_agent(player, self.output, self.half)
        print(f"{self.output}: {which(player)}, {size_of(self.output)}")


@dataclass(frozen=True)
class Watch:
    """Write a GIF of a trained agent that plays one meta-episode.

    Example: splagger watch t-ls/splagger -o agent.gif --task-seed 3
    """

    run: RunPath
    """A run folder, a file written by `splagger export`, or the name of an agent in the zoo."""
    output: Annotated[Path, WritableFile((".gif",)), tyro.conf.arg(aliases=["-o"])] = Path(
        "watch.gif"
    )
    """The file to write."""
    task_seed: TaskSeed = 0
    """Seed of the task."""
    member: Chosen = field(default_factory=Member)
    elsewhere: Elsewhere = field(default_factory=OtherEnv)

    def __call__(self) -> None:
        from splagger.agents import watch

        player = self.elsewhere.of(self.member.load(self.run))
        total = watch(player, self.output, self.task_seed)
        print(f"{self.output}: a meta-episode with a return of {total:.2f}{age(player)}")


@dataclass(frozen=True)
class AnalysisOptions(Options):
    """Options of an analysis, written as those of other commands."""

    at: FramesSoFarOption = None
    set: AssignmentsOption = ()
    env: Annotated[str, tyro.conf.arg(metavar="ENV")] = "t-ls"
    methods: MethodsOption = ()
    seeds: Annotated[Moderate | None, written("COUNT")] = None


@dataclass(frozen=True)
class Analyse:
    """Analyze untrained or trained memories: gradients, permutations, beliefs, contents, adaptation within a task.

    Example: splagger analyse memory --run runs/t-ls-demo/splagger t-ls/rnn
    """

    name: Annotated[Positional[str], tyro.conf.arg(metavar="NAME")]
    """gradient-first, gradient-parameters, gradient-inputs, permutation, pearl-variance, memory, adaptation, or all."""
    run: Annotated[tuple[Path, ...], written("RUN", several=True)] = ()
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


def which(player: "Player") -> str:
    """Returns which agent of a run this is, as titles show it."""
    return f"rate {player.point.rate:g}, seed {player.point.seed}{age(player)}"


def age(player: "Player") -> str:
    """Returns at which snapshot an agent is, as titles show it."""
    return "" if player.at is None else f", at {player.at:,} frames"
