"""Commands that train: list, train, sweep, bench."""

import itertools
import json
import sys
from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from splagger.cli.announcements import announce
from splagger.cli.formatting import number, show
from splagger.cli.launch_options import Where
from splagger.cli.options import OutputFolder
from splagger.errors import SettingError
from splagger.paper_numbers import PAPER_RATES
from splagger.ranges import Count, Episodes, Frames, Jobs, Seconds, Seed, Seeds
from splagger.runs.axes import AXES
from splagger.runs.folder import SAVE_EVERY
from splagger.tables import Table

if TYPE_CHECKING:
    from splagger.runs.run import Run

Positional = tyro.conf.Positional

SMALL_RATE = 1e-3

# Axes with one option each; rates and seeds have special options.
_SWEPT = [axis for axis in AXES if axis.name not in ("rate", "seed")]
_Swept: Any = make_dataclass(
    "_Swept",
    [
        (axis.plural, Annotated[tuple[axis.kind, ...], tyro.conf.arg(help=axis.help)], ())
        for axis in _SWEPT
    ],
    frozen=True,
)


@dataclass(frozen=True)
class Grid:
    """The members of a sweep: all combinations train in one program."""

    rates: tuple[str, ...] = ()
    """Learning rates; by default, and for "paper", 3e-3 1e-3 3e-4 1e-4 3e-5."""
    seeds: Seeds = 3
    """Number of seeds, counted from --first-seed."""
    first_seed: Seed = 0
    """The first seed."""
    frames: Frames | None = None
    """Environment steps per agent; by default as listed by `splagger list`."""
    episodes: Episodes | None = None
    """Episodes per task; by default as listed by `splagger list`."""
    swept: Annotated[_Swept, tyro.conf.arg(name="")] = field(default_factory=_Swept)  # pyright: ignore[reportInvalidTypeForm]
    set: tuple[str, ...] = ()
    """Other settings, as ppo.NAME=VALUE, env.NAME=VALUE, network.NAME=VALUE or method.NAME=VALUE."""
    race: bool = False
    """Stop rates that are clearly behind at 10, 25 and 50% of training; the others end as without a race."""
    small: bool = False
    """Use the compact network and one rate, 1e-3. On a CPU, this is the default for environments of others, unless
    --set or their row changes the network."""
    full: bool = False
    """Use the paper's network and rates also there."""

    def run(self, env: str, method: str) -> "Run":
        """Returns the run of a method on an environment."""
        from splagger.registry import SMALL
        from splagger.runs.run import Run
        from splagger.runs.settings import assignments

        if self.small and self.full:
            raise SettingError("--small and --full contradict each other; give only one of them")
        axes: dict[str, Any] = {k: v for k, v in vars(self.swept).items() if v}
        overrides = assignments(self.set)
        if self.small or self._is_small_by_default(env):
            overrides = SMALL | overrides
            axes["rates"] = (SMALL_RATE,)
        if self.rates == ("paper",):
            axes["rates"] = PAPER_RATES
        elif "paper" in self.rates:
            raise SettingError("--rates paper are the paper's five rates; list all rates or none")
        elif self.rates:
            axes["rates"] = [number("--rates", text) for text in self.rates]
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        for axis in _SWEPT:
            if axis.plural in axes and axis.setting in overrides:
                option = f"--{axis.plural.replace('_', '-')}"
                raise SettingError(
                    f"{option} and --set {axis.setting}=… are one setting; give only one of them"
                )
        grid = {"race": self.race, "seeds": seeds} | axes
        return Run.create(env, method, self.frames, overrides, self.episodes, **grid)

    def given(self) -> list[str]:
        """Returns the options that differ from their defaults."""
        default = Grid()
        own = [n for n, v in vars(self).items() if n != "swept" and v != getattr(default, n)]
        swept = [name for name, values in vars(self.swept).items() if values]
        return [f"--{name.replace('_', '-')}" for name in (*own, *swept)]

    def print_notes(self, *runs: "Run") -> None:
        """Prints the size of other people's environments, and the frames that are trained where they differ from --frames."""
        for env in dict.fromkeys(run.row.name for run in runs):
            if self._is_small_by_default(env):
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
        lines = []
        for run in runs:
            frames = run.config.updates * run.row.ppo.batch
            interval = run.row.ppo.eval_interval * run.row.ppo.batch
            if self.frames is not None and frames != run.frames:
                why = f"rounded to whole evaluation intervals of {interval:,} frames"
                lines.append(f"{frames:,} frames: {why}")
        for line in dict.fromkeys(lines):
            print(line)

    def _is_small_by_default(self, env: str) -> bool:
        """Whether nothing was said about the network of an environment of others, on a CPU."""
        changed = any(name.startswith("network.") for name in self.set)
        return not changed and self._declares_no_network(env)

    def _declares_no_network(self, env: str) -> bool:
        """Whether neither an environment of others nor --small or --full chooses a network, on a CPU."""
        import jax

        from splagger.bridges import resolve
        from splagger.network import Network

        if self.small or self.full or ":" not in env or jax.default_backend() != "cpu":
            return False
        return resolve(env).network == Network()


@dataclass(frozen=True)
class List:
    """List all environments and methods."""

    json: bool = False
    """Print JSON."""

    def __call__(self) -> None:
        from splagger.methods import ALIASES, METHODS
        from splagger.registry import ENVS

        if self.json:
            envs = {
                name: {"summary": r.summary, "episodes": r.episodes, "frames": r.frames}
                for name, r in ENVS.items()
            }
            found = {"environments": envs, "methods": sorted(METHODS), "aliases": ALIASES}
            print(json.dumps(found, indent=2))
            return
        rows = [(n, f"{r.episodes}", f"{r.frames / 1e6:g}M", r.summary) for n, r in ENVS.items()]
        show(Table("Environments", ("name", "episodes", "frames", ""), rows))
        print(
            "  and others: gym:ID, gym:MODULE:FUNCTION, jax:MODULE:NAME, gymnax:ID, xland:ID/RULESETS"
        )
        aliases = {name: alias for alias, name in ALIASES.items()}
        rows = [
            (
                name,
                method.encoder,
                type(method.aggregator).__name__ if method.skip < 1 else "none",
                f"{method.skip:g}",
                aliases.get(name, ""),
            )
            for name, method in METHODS.items()
            if name not in ALIASES
        ]
        show(Table("Methods", ("name", "encoder", "aggregator", "skip", "also called"), rows))


@dataclass(frozen=True)
class Train:
    """Train a method on an environment: all rates and seeds in one program.

    A finished run is left alone, an interrupted one continues from its last checkpoint, and a larger --frames extends a run. Ctrl-C saves before it stops.
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
    save_every: Seconds = SAVE_EVERY
    """Seconds between checkpoints."""

    def __call__(self) -> None:
        from splagger import hosts
        from splagger.report.tables import summary_table
        from splagger.training.runner import execute

        hosts.join()
        run = self.grid.run(self.env, self.method)
        self.grid.print_notes(run)
        if self.force or not run.folder(self.out).exists():
            announce(run)
        folder, worked = execute(run, self.out, self.force, self.save_every)
        if not hosts.is_first():
            return
        if not worked:
            print(f"already finished (--force starts over, more --frames extend it): {folder.path}")
        show(summary_table([folder]))


@dataclass(frozen=True)
class Sweep:
    """Train several methods on several environments; finished runs are skipped."""

    envs: tuple[str, ...]
    """Environments of `splagger list`, or other names that `splagger train` takes."""
    methods: tuple[str, ...]
    """Methods of `splagger list`, or import paths."""
    vary: tuple[str, ...] = ()
    """Settings with several values, as NAME=VALUE; there is one experiment per combination. Bash expands
    method.skip={0,0.5,1} to three of them."""
    grid: Annotated[Grid, tyro.conf.arg(name="")] = field(default_factory=Grid)
    out: OutputFolder = Path("runs")
    """Folder for run folders."""
    save_every: Seconds = SAVE_EVERY
    """Seconds between checkpoints."""
    jobs: Jobs | None = None
    """Experiments at a time. By default one, and several if NVIDIA's Multi-Process Service is running."""
    where: Annotated[Where, tyro.conf.arg(name="")] = field(default_factory=Where)

    def __call__(self) -> None:
        from splagger.launchers import train_all
        from splagger.report.tables import summary_table

        if not self.envs or not self.methods:
            raise SettingError("a sweep needs at least one of --envs and one of --methods")
        launcher, runs, grids = self.where.launcher(self.jobs), {}, self._grids()
        # All names are looked up before anything starts. Two names of one method are one run.
        for env, method, grid in itertools.product(self.envs, self.methods, grids):
            run = grid.run(env, method)
            runs[run.digest] = run
        grids[0].print_notes(*runs.values())
        if self.where.on == "local":
            announce(*(run for run in runs.values() if not run.folder(self.out).exists()))
        folders = train_all(list(runs.values()), self.out, save_every=self.save_every, on=launcher)
        show(summary_table(folders))

    def _grids(self) -> list[Grid]:
        """Returns the grid with each combination of the values to vary."""
        from splagger.runs.settings import alternatives, assignments, combinations

        found = combinations(alternatives(self.vary), assignments(self.grid.set))
        words = [tuple(f"{name}={value}" for name, value in one.items()) for one in found]
        return [replace(self.grid, set=(*self.grid.set, *more)) for more in words]


@dataclass(frozen=True)
class Bench:
    """Measure training speed: frames per second, compile time, peak memory."""

    env: Annotated[Positional[str], tyro.conf.arg(metavar="ENV")] = "t-ls"
    """An environment of `splagger list`."""
    method: Annotated[Positional[str], tyro.conf.arg(metavar="METHOD")] = "splagger"
    """A method of `splagger list`."""
    runs: Seeds = 1
    """Number of agents that train in one program."""
    blocks: Count = 3
    """Number of blocks of updates to time, after one warm-up block."""
    set: tuple[str, ...] = ()
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

        from splagger.cli.announcements import spoken
        from splagger.ppo.duration import estimated_seconds
        from splagger.runs.run import Run

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        run = Run.create(self.env, self.method, overrides=settings, rates=[1e-3], seeds=self.runs)
        blocks = run.config.updates / run.config.ppo.eval_interval
        seconds = estimated_seconds(run.config, self.runs) * (1 + self.blocks) / blocks
        if jax.default_backend() == "cpu" and seconds > 60:
            print(f"about {spoken(seconds)} here", file=sys.stderr)
