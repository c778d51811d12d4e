"""The options of `train` and `sweep` that describe a grid of agents."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splagger.cli.formatting import number
from splagger.cli.options import AssignmentsOption, EpisodesOption, FramesOption, written
from splagger.errors import SettingError
from splagger.paper_numbers import PAPER_RATES
from splagger.ranges import Seed, Seeds, Weight
from splagger.runs.axes import AXES, check_given_once

if TYPE_CHECKING:
    from splagger.runs.run import Run

SMALL_RATE = 1e-3

# Axes with one option each; rates and seeds have special options.
_SWEPT = [axis for axis in AXES if axis.name not in ("rate", "seed")]
_Swept: Any = make_dataclass(
    "_Swept",
    [
        (
            axis.plural,
            Annotated[
                tuple[axis.kind, ...],
                tyro.conf.arg(help=axis.help),
                written("WEIGHT" if axis.kind is Weight else "NUMBER", several=True),
            ],
            (),
        )
        for axis in _SWEPT
    ],
    frozen=True,
)


@dataclass(frozen=True)
class Grid:
    """The members of a sweep: all combinations train in one program."""

    rates: Annotated[tuple[str, ...], written("RATE", several=True)] = ()
    """Learning rates; by default, and for "paper", 3e-3 1e-3 3e-4 1e-4 3e-5."""
    seeds: Seeds = 3
    """Number of seeds, counted from --first-seed."""
    first_seed: Seed = 0
    """The first seed."""
    frames: FramesOption = None
    """Environment steps per agent; by default as listed by `splagger list`."""
    episodes: EpisodesOption = None
    """Episodes per task; by default as listed by `splagger list`."""
    swept: Annotated[_Swept, tyro.conf.arg(name="")] = field(default_factory=_Swept)  # pyright: ignore[reportInvalidTypeForm]
    set: AssignmentsOption = ()
    """Other settings, as ppo.NAME=VALUE, env.NAME=VALUE, network.NAME=VALUE or method.NAME=VALUE."""
    race: bool = False
    """Stop rates that are clearly behind at 10, 25 and 50% of training; the others end as without a race, up to rounding."""
    snapshot_every: FramesOption = None
    """Frames between snapshots of all agents, which evaluate, watch, inspect, export and analyse take with --at."""
    small: bool = False
    """Use the compact network and one rate, 1e-3. This is the default on a CPU for environments whose names begin with
    gym:, jax:, gymnax: or xland:, unless they or --set change the network."""
    full: bool = False
    """Use the paper's network and rates for these environments, too."""

    def run(self, env: str, method: str, varied: Mapping[str, Any] | None = None) -> "Run":
        """Returns the run of a method on an environment.

        - `varied`: other settings beside those of --set.
        """
        from splagger.registry import SMALL
        from splagger.runs.run import Run
        from splagger.runs.run_checks import check_varied
        from splagger.runs.settings import assignments

        if self.small and self.full:
            raise SettingError("--small and --full contradict each other; give only one of them")
        axes: dict[str, Any] = {k: v for k, v in vars(self.swept).items() if v}
        overrides = assignments(self.set) | dict(varied or {})
        if self.small or self.is_small_by_default(env, overrides):
            overrides = SMALL | overrides
            axes["rates"] = (SMALL_RATE,)
        if self.rates == ("paper",):
            axes["rates"] = PAPER_RATES
        elif "paper" in self.rates:
            raise SettingError("--rates paper are the paper's five rates; list all rates or none")
        elif self.rates:
            axes["rates"] = [number("--rates", text) for text in self.rates]
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        check_given_once(axes, overrides)
        grid = {"race": self.race, "snapshot_every": self.snapshot_every, "seeds": seeds} | axes
        run = Run.create(env, method, self.frames, overrides, self.episodes, **grid)
        check_varied(run, varied or ())
        return run

    def given(self) -> list[str]:
        """Returns the options that differ from their defaults."""
        default = Grid()
        own = [n for n, v in vars(self).items() if n != "swept" and v != getattr(default, n)]
        swept = [name for name, values in vars(self.swept).items() if values]
        return [f"--{name.replace('_', '-')}" for name in (*own, *swept)]

    def print_notes(self, *runs: "Run", varied: Mapping[str, Any] | None = None) -> None:
        """Prints the size of other people's environments, and the frames that are trained where they differ from --frames.

        - `varied`: as for `run`.
        """
        from splagger.runs.settings import assignments
        from splagger.training.announcements import print_notes, rounding_of

        given = assignments(self.set) | dict(varied or {})
        for env in dict.fromkeys(run.row.name for run in runs):
            if self.is_small_by_default(env, given):
                print(
                    f"{env} on a CPU: compact network, and rate {SMALL_RATE:g} unless --rates says otherwise; --full uses "
                    "the paper's network and rates",
                    file=sys.stderr,
                )
            elif self._declares_no_network(env):
                print(
                    f"{env}: --set network.… changes the paper's network and keeps its rates; --small changes the compact "
                    "one",
                    file=sys.stderr,
                )
        if self.frames is not None:
            print_notes(rounding_of(*runs))

    def is_small_by_default(self, env: str, overrides: Mapping[str, Any]) -> bool:
        """Whether nothing was said about the network of an environment of others, on a CPU."""
        changed = any(name.startswith("network.") for name in overrides)
        return not changed and self._declares_no_network(env)

    def _declares_no_network(self, env: str) -> bool:
        """Whether neither an environment of others nor --small or --full chooses a network, on a CPU."""
        import jax

        from splagger.bridges import resolve
        from splagger.network import Network

        if self.small or self.full or ":" not in env or jax.default_backend() != "cpu":
            return False
        return resolve(env).network == Network()
