"""The description of a run: one environment, one method, and a grid of rates, seeds and other axes."""

import functools as ft
import itertools
import math
import shlex
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from splagger.agent import check_precision
from splagger.bridges import GymEnv, resolve
from splagger.bridges.importing import import_object
from splagger.errors import SettingError, UserError, kind_of
from splagger.identity import builder, digest_of, kind_of_others, plain
from splagger.memory import ENCODERS
from splagger.methods import METHODS, Method
from splagger.paper_numbers import PAPER_SEEDS
from splagger.ppo.settings import Config
from splagger.ranges import Frames, check
from splagger.registry import ENVS, EnvRow
from splagger.runs.axes import AXES, PLURALS, RACE_AT, RACE_MARGIN, grid_of
from splagger.runs.record import as_text
from splagger.runs.run_checks import check_run
from splagger.runs.settings import (
    changed,
    check_mapping,
    names_of_settings,
    override,
    value_of,
    without_numpy,
)
from splagger.tables import lookup

Number = float | int


# One member of the grid; it has one field per axis.
Point = namedtuple("Point", [axis.name for axis in AXES])


@dataclass(frozen=True)
class Run:
    """The immutable description of an experiment; its `digest` names the folder.

    >>> run = Run.create("t-ls", "splagger", rates=(1e-3, 3e-4), seeds=3)
    >>> len(run.points), run.config.updates
    (6, 133)
    """

    row: EnvRow
    method: Method
    frames: int
    grid: tuple[tuple[Number, ...], ...]  # values of each axis, in the order of `AXES`
    overrides: tuple[tuple[str, Any], ...] = ()
    method_path: str = ""  # "package.module:name" of a method that is not in `METHODS`
    race: bool = False  # rates that are clearly behind stop early
    snapshot_every: int | None = None  # frames between snapshots; not part of the digest

    @classmethod
    def create(
        cls,
        env: Any,
        method: str | Method,
        frames: Number | None = None,
        overrides: Mapping[str, Any] | None = None,
        episodes: int | np.integer | None = None,
        race: bool = False,
        snapshot_every: Number | None = None,
        **axes: Any,
    ) -> "Run":
        """Looks up names, fills in defaults from the environment's row and the method, and checks everything.

        - `env`: a name, a row of `ENVS` or an environment, see `splagger.bridges.resolve`.
        - `method`: a name, an import path ("package.module:name") or a `Method`.
        - `frames`: environment steps per member.
        - `overrides`: maps settings ("ppo.…", "env.…", "network.…", "method.…") to their new values.
        - `episodes`: episodes per task.
        - `race`: stop rates that are clearly behind at 10, 25 and 50% of training, see `splagger.training.race`.
        - `snapshot_every`: frames between snapshots, the agents that are kept during training.
        - `axes`: values of any axis of `AXES` by its plural (rates, seeds, kl_weights, …). `seeds` may be a count.
        """
        check_precision()
        row = resolve(env)
        row = row if episodes is None else row.with_meta(episodes=without_numpy(episodes))
        check_mapping("settings", overrides or {}, '{"ppo.steps": 80}')
        own, given = _settings(row), _method(method)
        settings: dict[str, Any] = own | without_numpy(dict(overrides or {}))
        named = _registered(row, given)
        row, chosen = override(row, given, settings)
        if named != (row, given):  # a copy of a registered one, whose changes are settings, too
            both = {name: value_of(name, row, chosen) for name in names_of_settings(row, chosen)}
            settings = both | settings
        settings = own | changed(settings, named, (row, chosen))
        if "env.kwargs" in settings:  # recorded in one spelling
            del settings["env.kwargs"]
            settings |= _settings(row)
        frames = row.frames if frames is None else frames
        for name, number in (("frames", frames), ("snapshot_every", snapshot_every)):
            if isinstance(number, bool):
                raise SettingError(f"{name} must be a number of frames, got {number}")
        check("frames", frames, Frames)
        if snapshot_every is not None:
            check("snapshot_every", snapshot_every, Frames)
        run = cls(
            row,
            chosen,
            int(frames),
            grid_of(plan_of(row, chosen), axes),
            tuple(sorted(settings.items())),
            method if isinstance(method, str) and ":" in method else "",
            race,
            snapshot_every and int(snapshot_every),
        )
        check_run(run)
        return run

    def values(self, plural: str) -> tuple[Number, ...]:
        """Returns the values of one axis: `run.values("rates")`."""
        return self.grid[PLURALS.index(plural)]

    @property
    def rates(self) -> tuple[Number, ...]:
        return self.values("rates")

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(int(seed) for seed in self.values("seeds"))

    @property
    def points(self) -> list[Point]:
        """All members, in the order of the program's run axis."""
        return [Point(*values) for values in itertools.product(*self.grid)]

    @property
    def size(self) -> int:
        """The number of members."""
        return math.prod(map(len, self.grid))

    @property
    def config(self) -> Config:
        """The static part of the training program."""
        return Config(self.method, self.row.meta, self.row.ppo, self.row.network, self._updates())

    @property
    def can_be_extended(self) -> bool:
        """Whether more frames continue this run exactly: no schedule, buffer or race depends on their number."""
        return not (self.row.ppo.anneal or self.method.reconstruct or self.race)

    @ft.cached_property
    def digest(self) -> str:
        """Identifies the experiment. More frames change it only if the run cannot be extended."""
        return digest_of(self.describe())

    def folder(self, out: str | Path) -> Path:
        """Returns the folder of this run below `out`."""
        return Path(out) / self.row.folder / self.method.name / self.digest

    def describe(self) -> dict[str, Any]:
        """Returns everything that determines the result, as plain data; frames only if the run cannot be extended."""
        plan = plan_of(self.row, self.method)
        for axis in AXES:
            values = self.values(axis.plural)
            if not axis.newer or values != axis.default(plan):
                plan[axis.plural] = list(values)
        if self.race:
            plan["race"] = {"at": list(RACE_AT), "margin": RACE_MARGIN}
        if not self.can_be_extended:
            plan["updates"] = self._updates()
        return plan

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments of `create` that make this run again, as plain data."""
        return {
            "env": self.row.name,
            "method": self.method_path or self.method.name,
            "episodes": self.row.episodes,
            "frames": self.frames,
            **{axis.plural: self.values(axis.plural) for axis in AXES},
            "overrides": dict(self.overrides),
            **({"race": True} if self.race else {}),
            **({"snapshot_every": self.snapshot_every} if self.snapshot_every else {}),
        }

    def command(self) -> str:
        """Returns the command that makes this run, without defaults.

        The command line cannot express seeds with gaps; a comment then lists them.
        """
        words = ["splagger", "train", self.row.name, self.method_path or self.method.name]
        if self.row.episodes != _default_episodes(self.row.name):
            words += ["--episodes", str(self.row.episodes)]
        plan = plan_of(self.row, self.method)
        for axis in AXES:
            values = self.values(axis.plural)
            if axis.name != "seed" and values != axis.default(plan):
                words += [f"--{axis.plural.replace('_', '-')}", *map(repr, values)]
        first, count = self.seeds[0], len(self.seeds)
        words += ["--first-seed", str(first)] if first != 0 else []
        words += ["--seeds", str(count)] if count != PAPER_SEEDS else []
        words += ["--frames", str(self.frames)] if self.frames != self.row.frames else []
        words += ["--race"] if self.race else []
        words += ["--snapshot-every", str(self.snapshot_every)] if self.snapshot_every else []
        if ":" in self.row.name and not any(k.startswith("network.") for k, _ in self.overrides):
            words += ["--full"]  # without it, the network would depend on the machine
        if self.overrides:
            words += ["--set", *(f"{name}={as_text(value)}" for name, value in self.overrides)]
        gaps = self.seeds != tuple(range(first, first + count))
        return shlex.join(words) + (f"  # seeds {self.seeds}, by splagger.train" if gaps else "")

    def member(self, point: Point) -> str:
        """Names a member in run.json; an axis newer than the run only if it is swept."""
        named = [a for a in AXES if not a.newer or len(self.values(a.plural)) > 1]
        return ",".join(f"{axis.name}={getattr(point, axis.name)!r}" for axis in named)

    def has_snapshot(self, update: int) -> bool:
        """Whether the agents are kept after this evaluation: the one before training, and the first after every `snapshot_every` frames."""
        if self.snapshot_every is None:
            return False
        batch, interval = self.row.ppo.batch, self.row.ppo.eval_interval
        before = (update - interval) * batch // self.snapshot_every
        return update == 0 or update * batch // self.snapshot_every > before

    def _updates(self) -> int:
        """The number of updates: whole evaluation intervals, at least one."""
        interval = self.row.ppo.eval_interval
        updates = max(1, self.frames // self.row.ppo.batch)
        return -(-updates // interval) * interval


def plan_of(row: EnvRow, method: Method) -> dict[str, Any]:
    """The description of a run without its grid."""
    meta = kind_of_others(row.meta)
    return {
        **builder(ENCODERS[method.encoder]),
        "env": row.name,
        "environment": plain(row.env),
        **({"meta": meta} if meta else {}),
        "episodes": row.episodes,
        "method": plain(method),
        "ppo": plain(row.ppo),
        "network": plain(row.network),
    }


def _method(given: str | Method) -> Method:
    """Looks up a method by its name or import path."""
    if isinstance(given, str) and ":" not in given:
        return lookup(METHODS, given, "method")
    name = given if isinstance(given, str) else "method"
    found = import_object(given, f"method {given}") if isinstance(given, str) else given
    if not isinstance(found, Method):
        raise SettingError(
            f"{name} must be a splagger.Method, got {kind_of(found)}; create one with splagger.Method('mine', aggregator=…)"
        )
    return found


def _registered(row: EnvRow, method: Method) -> tuple[EnvRow, Method]:
    """Returns the row and the method that their names stand for, which may have been passed with other settings."""
    named = ENVS.get(row.name, row)
    return named if type(named.env) is type(row.env) else row, METHODS.get(method.name, method)


def _default_episodes(name: str) -> int | None:
    """Episodes per task of the environment with this name; None if it cannot be looked up."""
    try:
        return resolve(name).episodes
    except UserError:
        return None


def _settings(row: EnvRow) -> dict[str, Any]:
    """The overrides that turn the name of a Gymnasium environment into this environment."""
    return row.env.settings() if isinstance(row.env, GymEnv) else {}
