"""What to run: one environment, one method, and a grid of rates, seeds and other numbers."""

import dataclasses
import hashlib
import inspect
import itertools
import json
import math
import numbers
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from splagger.aggregators import AbstractAggregator, check_aggregator
from splagger.aggregators import temperatures as temperatures_of
from splagger.envs import MetaEnv, check_env
from splagger.envs.places import find
from splagger.experiments.settings import override
from splagger.methods import METHODS, Method
from splagger.policy import Deterministic
from splagger.ppo.types import Config
from splagger.registry import PAPER_RATES, EnvRow
from splagger.resolve import resolve
from splagger.tables import lookup

Number = float | int
USUAL_SEEDS = 3


class Point(NamedTuple):
    """One member of the grid: what distinguishes it from the others."""

    rate: float
    entropy_weight: float
    kl_weight: float
    temperature: float
    seed: int


# Settings that older runs have not heard of: at these values they are not told, and folders keep their names.
YOUNGER = {"update_noise": "stored"}


@dataclass(frozen=True)
class Run:
    """The frozen description of an experiment; its `digest` names the folder.

    >>> run = Run.create("t-ls", "splagger", rates=(1e-3, 3e-4), seeds=3)
    >>> len(run.points), run.config.updates
    (6, 133)
    """

    row: EnvRow
    method: Method
    frames: int
    rates: tuple[float, ...]
    seeds: tuple[int, ...]
    entropy_weights: tuple[float, ...]
    kl_weights: tuple[float, ...]
    temperatures: tuple[float, ...]
    overrides: tuple[tuple[str, Any], ...] = ()
    place: str = ""  # of the method, "package.module:name", where it is in no table

    @classmethod
    def create(
        cls,
        env: Any,
        method: str | Method,
        rates: Number | Sequence[Number] = PAPER_RATES,
        seeds: int | Sequence[int] = USUAL_SEEDS,
        frames: Number | None = None,
        overrides: Mapping[str, Any] | None = None,
        entropy_weights: Number | Sequence[Number] = (),
        kl_weights: Number | Sequence[Number] = (),
        temperatures: Number | Sequence[Number] = (),
        episodes: int | None = None,
    ) -> "Run":
        """Names are looked up, defaults come from the environment's row and the method.

        `env` is whatever `resolve` knows, `method` a name, a place ("package.module:name") or a `Method`. `episodes`
        are those of a task. `overrides` maps "ppo.…", "env.…", "network.…" and "method.…" to other values; every
        empty grid means the row's own number. `seeds` are named, or so many.
        """
        row = resolve(env)
        row = row if episodes is None else replace(row, episodes=episodes)
        overrides = _settings(row) | dict(overrides or {})
        row, chosen = override(row, _method(method), overrides)
        if "env.kwargs" in overrides:  # in one spelling, however they were written
            del overrides["env.kwargs"]
            overrides |= _settings(row)
        listed: Any = range(int(seeds)) if isinstance(seeds, numbers.Integral) else seeds
        frames = row.frames if frames is None else frames
        if not math.isfinite(frames):
            raise ValueError(f"frames must be a finite number, got {frames}")
        run = cls(
            row,
            chosen,
            int(frames),
            _floats(rates),
            tuple(int(seed) for seed in listed),
            _floats(entropy_weights) or (row.ppo.entropy,),
            _floats(kl_weights) or (row.ppo.kl_weight,),
            _floats(temperatures) or (_own_temperature(chosen),),
            tuple(sorted(overrides.items())),
            method if isinstance(method, str) and ":" in method else "",
        )
        run._check()
        return run

    def _check(self) -> None:
        if self.frames < 1:
            raise ValueError(f"frames must be positive, got {self.frames}")
        if not self.rates or not self.seeds:
            raise ValueError("a run needs at least one rate and one seed")
        for name in ("rates", "entropy_weights", "kl_weights", "temperatures"):
            for value in getattr(self, name):
                if not math.isfinite(value) or value < 0:
                    raise ValueError(f"{name} must be finite numbers ≥ 0, got {value}")
        for seed in self.seeds:
            if not 0 <= seed < 2**32:
                raise ValueError(f"seeds must be whole numbers from 0 to 2³² - 1, got {seed}")
        if len(set(self.points)) < len(self.points):
            raise ValueError("a rate, seed or other number is listed twice")
        self._check_use()
        self._check_environment()

    def _check_use(self) -> None:
        """A sweep of what a method does not have would train the same agents again and again."""
        unused = {
            "temperatures": not temperatures_of(self.method.aggregator),
            "kl_weights": isinstance(self.method.latent, Deterministic),
        }
        for name, without in unused.items():
            if without and getattr(self, name) != self._usual_grid()[name]:
                raise ValueError(f"method {self.method.name!r} has no use for {name}")

    def _check_environment(self) -> None:
        """What cannot be made, named or compiled is told before anything is written."""
        meta = self.row.meta
        if meta.horizon < 1:
            raise ValueError(f"{self.row.name}: its horizon must be at least 1 step")
        try:
            hash(self.config)
            self.digest  # noqa: B018
        except TypeError as error:
            raise ValueError(
                f"{self.row.name}: settings of an environment and a method must be plain: numbers, texts and "
                f"tuples ({error})"
            ) from None
        if isinstance(meta, MetaEnv):
            check_env(meta.env)
        if self.method.skip < 1 and not _is_ours(self.method.aggregator):
            check_aggregator(self.method.aggregator)

    @property
    def points(self) -> list[Point]:
        axes = self.rates, self.entropy_weights, self.kl_weights, self.temperatures, self.seeds
        return [Point(*values) for values in itertools.product(*axes)]

    @property
    def config(self) -> Config:
        return Config(self.method, self.row.meta, self.row.ppo, self.row.network, self._updates())

    def arguments(self) -> dict[str, Any]:
        """What `create` needs to make this run again, as plain data."""
        return {
            "env": self.row.name,
            "method": self.place or self.method.name,
            "episodes": self.row.episodes,
            "frames": self.frames,
            "rates": self.rates,
            "seeds": self.seeds,
            "entropy_weights": self.entropy_weights,
            "kl_weights": self.kl_weights,
            "temperatures": self.temperatures,
            "overrides": dict(self.overrides),
        }

    def command(self) -> str:
        """The command line that makes this run, with what is not usual; a comment where it cannot (seeds
        with gaps)."""
        words = ["splagger", "train", self.row.name, self.place or self.method.name]
        if self.row.episodes != _usual_episodes(self.row.name):
            words += ["--episodes", str(self.row.episodes)]
        for option, usual in self._usual_grid().items():
            if getattr(self, option) != usual:
                values = [repr(value) for value in getattr(self, option)]
                words += [f"--{option.replace('_', '-')}", *values]
        first, count = self.seeds[0], len(self.seeds)
        words += ["--first-seed", str(first)] if first != 0 else []
        words += ["--seeds", str(count)] if count != USUAL_SEEDS else []
        words += ["--frames", str(self.frames)] if self.frames != self.row.frames else []
        if self.overrides:
            words += ["--set", *(f"{name}={_text(value)}" for name, value in self.overrides)]
        gaps = self.seeds != tuple(range(first, first + count))
        return shlex.join(words) + (f"  # seeds {self.seeds}, by splagger.train" if gaps else "")

    def _usual_grid(self) -> dict[str, tuple[float, ...]]:
        """What is trained if nothing else is asked for."""
        return {
            "rates": PAPER_RATES,
            "entropy_weights": (self.row.ppo.entropy,),
            "kl_weights": (self.row.ppo.kl_weight,),
            "temperatures": (_own_temperature(self.method),),
        }

    @property
    def digest(self) -> str:
        """Equal for equal experiments; more frames of the same experiment do not change it."""
        text = json.dumps(self.describe(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def folder(self, out: str | Path) -> Path:
        """Where it is trained, below `out`."""
        return Path(out) / self.row.folder / self.method.name / self.digest

    def describe(self) -> dict[str, Any]:
        """All that determines the result, as plain data. Frames count only where a schedule or a buffer
        depends on them; elsewhere a longer run begins like a shorter one."""
        plan = {
            "env": self.row.name,
            "environment": _plain(self.row.env),
            "episodes": self.row.episodes,
            "method": _plain(self.method),
            "ppo": {k: v for k, v in _plain(self.row.ppo).items() if (k, v) not in YOUNGER.items()},
            "network": _plain(self.row.network),
            "rates": list(self.rates),
            "seeds": list(self.seeds),
            "entropy_weights": list(self.entropy_weights),
            "kl_weights": list(self.kl_weights),
            "temperatures": list(self.temperatures),
        }
        if self.row.ppo.anneal or self.method.reconstruct:
            plan["updates"] = self._updates()
        return plan

    def _updates(self) -> int:
        """Whole evaluation intervals, at least one."""
        interval = self.row.ppo.eval_interval
        updates = max(1, self.frames // self.row.ppo.batch)
        return -(-updates // interval) * interval


def _method(given: str | Method) -> Method:
    """By its name or its place."""
    if not isinstance(given, str):
        return given
    if ":" not in given:
        return lookup(METHODS, given, "method")
    try:
        found = find(given)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"method {given} cannot be found ({error})") from None
    if not isinstance(found, Method):
        raise ValueError(f"{given} is no splagger.Method but {type(found).__name__}")
    return found


def _usual_episodes(name: str) -> int | None:
    """What a task of this name has if nothing is said; None for names that are in no table."""
    try:
        return resolve(name).episodes
    except ValueError:
        return None


def _settings(row: EnvRow) -> dict[str, Any]:
    """What an environment that was made with settings needs to be found by its name."""
    return getattr(row.env, "settings", dict)()


def _own_temperature(method: Method) -> float:
    found = temperatures_of(method.aggregator)
    return float(found[0]) if found else 0.0


def _floats(given: Number | Sequence[Number]) -> tuple[float, ...]:
    """Of one number, or of several."""
    try:
        return tuple(map(float, [given] if isinstance(given, numbers.Real) else given))
    except (TypeError, ValueError):
        raise ValueError(
            f"rates and other grids are numbers or lists of them, got {given!r}"
        ) from None


def _plain(value: Any) -> Any:
    """Any settings as JSON knows them, with all their fields; equal settings give equal data."""
    if hasattr(value, "describe"):
        return value.describe()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **_code(type(value)), **fields}
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def _of_this_package(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _is_ours(aggregator: AbstractAggregator) -> bool:
    """Whether it and all it is made of are this package's: those are tested."""
    parts = vars(aggregator).values()
    inner = [part for part in parts if isinstance(part, AbstractAggregator)]
    return _of_this_package(type(aggregator)) and all(map(_is_ours, inner))


def _code(kind: type) -> dict[str, str]:
    """A digest of the source of a class that is not this package's: who edits it makes another experiment."""
    if _of_this_package(kind):
        return {}
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):  # typed into a prompt: there is no source to be had
        return {}
    return {"code": hashlib.sha256(source.encode()).hexdigest()[:10]}


def _text(value: Any) -> str:
    """A setting as the command line takes it."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
