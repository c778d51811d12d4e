"""The command that writes a page about trained agents: inspect."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from splagger.cli.agent_commands import Chosen, Elsewhere, Member, OtherEnv
from splagger.cli.formatting import size_of
from splagger.cli.options import StepOption, WritableFile
from splagger.ranges import TaskSeed

Agents = Annotated[
    tyro.conf.Positional[tuple[Path, ...]],
    tyro.conf.arg(metavar="AGENT", help_behavior_hint="(required)"),
]


@dataclass(frozen=True)
class Inspect:
    """Write a page on which one meta-episode can be followed step by step: decisions, memory, and what it is worth.

    With two agents of the same environment, both play the same task side by side.

    Example: splagger inspect t-ls/splagger t-ls/rnn -o both.html
    """

    agents: Agents
    """One or two run folders, files written by `splagger export`, or names of agents in the zoo."""
    output: Annotated[Path, WritableFile((".html",)), tyro.conf.arg(aliases=["-o"])] = Path(
        "agent.html"
    )
    """The file to write: one HTML page that needs no network."""
    task_seed: TaskSeed = 0
    """Seed of the task."""
    cut: StepOption = None
    """Step at which interventions empty or replace the memory; by default the middle of the last episode."""
    no_interventions: bool = False
    """Leave out what the memory is worth, which takes most of the time."""
    no_pictures: bool = False
    """Leave out the pictures of the environment, which needs no render() then."""
    member: Chosen = field(default_factory=Member)
    elsewhere: Elsewhere = field(default_factory=OtherEnv)

    def __call__(self) -> None:
        from splagger.inspection import inspect
        from splagger.inspection.api import check_players

        players = [self.elsewhere.of(self.member.load(path)) for path in self.agents]
        check_players(players)
        worth = not self.no_interventions
        print("playing a task" + " and interventions on the memory" * worth + " …", file=sys.stderr)
        traces = inspect(
            players, self.output, self.task_seed, self.cut, worth, not self.no_pictures
        )
        returns = " and ".join(f"{trace.reward.sum():.2f}" for trace in traces)
        print(f"{self.output}: a meta-episode with a return of {returns}, {size_of(self.output)}")
