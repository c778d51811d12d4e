"""All that was recorded, asked by name: the curves of a method on an environment, the values of an analysis."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splagger.figures.members import Members, Settings, best_rate, members_of, own_settings, pool
from splagger.figures.scales import USUAL
from splagger.recorded import RecordedRun, RunError, find_recorded

# on which seeds a rate is reported: new ones, the half that it was not chosen on, those that it was
# chosen on, or any, where there was nothing to choose
FRESH, HELD_OUT, SAME, ONE_RATE = "fresh", "held out", "same", "one rate"
COVERED = (
    0.9  # runs are of one length if the shorter one has nine tenths of the longer one's frames
)


class Series(NamedTuple):
    """A method on an environment; a number that is not given is the run's own."""

    env: str
    method: str
    kl_weight: float | int | None = None
    temperature: float | int | None = None

    def settings(self, own: Settings) -> Settings:
        given = {"kl_weight": self.kl_weight, "temperature": self.temperature}
        return own._replace(**{k: float(v) for k, v in given.items() if v is not None})


class Chosen(NamedTuple):
    """The curves of one rate, and which seeds they are of."""

    rate: float
    frames: np.ndarray  # [T]
    curves: np.ndarray  # [S, T]
    source: str


class Recorded(NamedTuple):
    """A run folder, read."""

    path: Path
    record: dict[str, Any]
    members: dict[Settings, Members]

    @property
    def name(self) -> tuple[str, str]:
        return self.record["arguments"]["env"], self.record["arguments"]["method"]


class Analysis(NamedTuple):
    """Values of an analysis for one method: a row a seed and dimension, a column a step."""

    steps: np.ndarray  # [T]
    values: np.ndarray  # [S, D, T]


class Evidence:
    """Runs below some folders, and analyses below another."""

    def __init__(self, runs: Sequence[Recorded], analyses: Path | None = None):
        self.runs, self.analyses = list(runs), analyses
        self._members: dict[Series, Members | None] = {}
        self._tables: dict[Path, dict[str, Analysis]] = {}

    @classmethod
    def read(cls, *roots: str | Path, analyses: str | Path | None = None) -> "Evidence":
        """What is below `roots`. An analysis is a folder <analyses>/<name>/<when> with a values.csv."""
        folders = {run.path.resolve(): run for root in roots for run in find_recorded(root)}
        runs = [_recorded(run) for run in folders.values()]
        return cls(runs, Path(analyses) if analyses else None)

    def members(self, series: Series) -> Members | None:
        """All agents trained for `series`, from whatever folders; None if there are none.

        Folders with other settings than the environment's are other experiments and do not count, nor do
        short ones beside longer ones: they were trials. Where folders of one name disagree all the same, the
        newest and those like it count.
        """
        if series not in self._members:
            self._members[series] = self._gather(series)
        return self._members[series]

    def _gather(self, series: Series) -> Members | None:
        found = self._parts(series)
        return pool([members for _, members in found]) if found else None

    def _parts(self, series: Series) -> list[tuple[Recorded, Members]]:
        """The runs that count for `series`, oldest first, with the part of their members that it asks for."""
        runs = [run for run in self.runs if run.name == series[:2] and _is_usual(run)]
        asked = [(run, series.settings(own_settings(run.record))) for run in runs]
        found = whole([(run, run.members[s]) for run, s in asked if s in run.members])
        return [f for f in found if _agree(f[0].record["run"], found[-1][0].record["run"])]

    def lacks(self, series: Series) -> bool:
        """Whether there is no run of it, or none as long as the paper's."""
        members, usual = self.members(series), USUAL.get(series.env)
        return members is None or bool(usual and members.frames[-1] < COVERED * usual.frames)

    def folders(self, series: Series) -> list[Path]:
        """Where the runs that count for `series` lie, oldest first."""
        return [run.path for run, _ in self._parts(series)]

    def counts(self, run: Recorded) -> bool:
        """Whether the run is part of any series; another's place may have been taken by newer ones."""
        asked = [Series(*run.name, s.kl_weight, s.temperature) for s in run.members]
        return any(run is other for series in asked for other, _ in self._parts(series))

    def paper(self, series: Series) -> Chosen | None:
        """The best rate, reported on the seeds it was chosen on: what the paper does."""
        members = self.members(series)
        return None if members is None else _chosen_on_itself(_sweep(members))

    def honest(self, series: Series) -> Chosen | None:
        """The best rate, reported on seeds that it was not chosen on, wherever there are some."""
        members = self.members(series)
        return None if members is None else unbiased(members)

    def shown(self, series: Series) -> Chosen | None:
        """What figures draw."""
        members = self.members(series)
        return None if members is None else drawn(members)

    def analysis(self, name: str, when: str, method: str) -> Analysis | None:
        """The values of one method, or None where that analysis was not made."""
        if self.analyses is None:
            return None
        path = self.analyses / name / when / "values.csv"
        if path not in self._tables:
            self._tables[path] = _analyses(path)
        return self._tables[path].get(method)

    def analyses_made(self) -> dict[tuple[str, str], dict[str, Any]]:
        """(name, moment) → what analysis.json says, of every analysis there is."""
        paths = sorted(self.analyses.glob("*/*/analysis.json")) if self.analyses else []
        return {(path.parts[-3], path.parts[-2]): _described(path) for path in paths}


def _analyses(path: Path) -> dict[str, Analysis]:
    """Method → values, of one values.csv."""
    import pandas

    if not path.is_file():
        return {}
    try:
        table = pandas.read_csv(path).fillna({"dimension": 0})
        return {str(method): _values(part) for method, part in table.groupby("method")}
    except (ValueError, KeyError) as error:
        raise RunError(f"{path} is damaged ({error}); make that analysis again") from None


def _described(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{path} is damaged ({error}); make that analysis again") from None
    return found if isinstance(found, dict) else {}


def _values(table: Any) -> Analysis:
    wide = table.pivot_table(index=["seed", "dimension"], columns="step", values="value")
    seeds = wide.index.get_level_values("seed").nunique()
    values = wide.to_numpy(float).reshape(seeds, -1, wide.shape[1])
    return Analysis(wide.columns.to_numpy(float), values)


def _recorded(run: RecordedRun) -> Recorded:
    record = run.read()
    if not {"run", "arguments"} <= set(record) or not {"env", "method"} <= set(record["arguments"]):
        raise RunError(f"{run.path} was written by another version: run.json lacks its description")
    return Recorded(run.path, record, members_of(run))


def _is_usual(run: Recorded) -> bool:
    """Whether the environment is as its name says."""
    usual, episodes = USUAL.get(run.name[0]), run.record["run"].get("episodes")
    other = usual and episodes not in (None, usual.episodes)
    return not other and not run.record["arguments"].get("overrides")


def _sweep(members: Members) -> Members:
    """Those whose seed was tried at several rates; all, if there are none."""
    keys = list(members.returns)
    several = {seed for _, seed in keys if sum(s == seed for _, s in keys) > 1}
    return members.of(list(several)) if several else members


def whole(found: list[tuple[Recorded, Members]]) -> list[tuple[Recorded, Members]]:
    """Oldest first, without those that are unfinished or trials beside longer ones."""
    found = sorted(found, key=lambda f: f[0].record.get("provenance", {}).get("started", ""))
    found = [f for f in found if f[0].record.get("finished")] or found[-1:]
    most = max((members.frames[-1] for _, members in found), default=0)
    return [f for f in found if f[1].frames[-1] >= COVERED * most]


def unbiased(members: Members) -> Chosen:
    """The best rate on seeds that it was not chosen on: fresh ones, or the other half where there are four."""
    sweep = _sweep(members)
    rate = best_rate(sweep)
    fresh = [s for s in members.seeds(rate) if (rate, s) not in sweep.returns]
    if fresh:
        return _at(rate, members.of(fresh), FRESH)
    seeds = sorted({seed for _, seed in sweep.returns})
    shared = sweep.at([rate for rate in sweep.rates if sweep.seeds(rate) == seeds])
    if len(shared.rates) < 2 or len(seeds) < 4:
        return _chosen_on_itself(sweep)
    return _at(best_rate(shared.of(seeds[::2])), shared.of(seeds[1::2]), HELD_OUT)


def drawn(members: Members) -> Chosen:
    """The best rate on fresh seeds where there are some, else the paper's choice."""
    chosen = unbiased(members)
    return chosen if chosen.source == FRESH else _chosen_on_itself(_sweep(members))


def _chosen_on_itself(members: Members) -> Chosen:
    return _at(best_rate(members), members, SAME if len(members.rates) > 1 else ONE_RATE)


def _at(rate: float, members: Members, source: str) -> Chosen:
    return Chosen(rate, members.frames, members.curves(rate), source)


GRIDS = {"rates", "seeds", "entropy_weights", "kl_weights", "temperatures"}


def _agree(one: Any, other: Any) -> bool:
    """Equal wherever both say something, whatever grid they sweep: an older version may say less."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one == other
    return all(_agree(one[k], other[k]) for k in (set(one) & set(other)) - GRIDS)
