"""Recorded results by name: curves of a method on an environment, values of an analysis."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splagger.errors import RunError
from splagger.paper_numbers import PAPER
from splagger.runs.analyses import (
    VALUES,
    AnalysisKey,
    find_analyses,
    read_description,
    read_values,
)
from splagger.runs.axes import PLURALS
from splagger.runs.folder import find_runs, paths_of
from splagger.runs.record import in_words
from splagger.stats import selection
from splagger.stats.members import Members, Settings, default_settings, pool
from splagger.stats.recorded import COVERED, Part, RecordedRun, pilot_of, that_count
from splagger.stats.selection import Chosen
from splagger.tables import listed


@dataclass(frozen=True)
class Series:
    """A method on an environment, with given values of some swept settings and defaults for the others.

    >>> Series.create("t-ls", "pearl", kl_weight=0.01).given
    (('kl_weight', 0.01),)
    """

    env: str
    method: str
    given: tuple[tuple[str, float], ...] = ()

    @classmethod
    def create(cls, env: str, method: str, **given: float | int) -> "Series":
        return cls(env, method, tuple(sorted((k, float(v)) for k, v in given.items())))

    @property
    def name(self) -> tuple[str, str]:
        """(environment, method)."""
        return self.env, self.method

    def settings(self, default: Settings) -> Settings:
        """Returns `default` with the given values."""
        return default._replace(**dict(self.given))


class AnalysisValues(NamedTuple):
    """The values of an analysis for one method."""

    steps: np.ndarray  # [T]
    values: np.ndarray  # [seeds, dimensions, T]


class Evidence:
    """Recorded runs, and the folder of all analyses."""

    def __init__(self, runs: Sequence[RecordedRun], analyses: Path | None = None):
        self.runs, self.analyses = list(runs), analyses
        self._runs_of: dict[tuple[str, str], list[RecordedRun]] = {}
        for run in self.runs:
            self._runs_of.setdefault(run.name, []).append(run)
        self._members: dict[Series, Members | None] = {}
        self._pilots: dict[Series, Part | None] = {}
        self._values: dict[AnalysisKey, dict[str, AnalysisValues]] = {}

    @classmethod
    def read(cls, *roots: str | Path, analyses: str | Path | None = None) -> "Evidence":
        """Reads all runs below `roots`. Analyses are folders <analyses>/<name>/<when> with a values.csv."""
        folders = {run.path.resolve(): run for root in roots for run in find_runs(root)}
        runs = [RecordedRun.read(folder) for folder in folders.values()]
        return cls(runs, Path(analyses) if analyses else None)

    @classmethod
    def read_every(cls, *roots: Any) -> "Evidence":
        """Reads all runs below `roots`, see `paths_of`; raises a RunError if a root has none, such as a path with a typo."""
        found = paths_of(roots)
        if not found:
            raise RunError("name at least one run folder, or a folder that contains run folders")
        absent = {root: "" if root.exists() else " (it does not exist)" for root in found}
        empty = [f"{root}{why}" for root, why in absent.items() if not find_runs(root)]
        if empty:
            raise RunError(f"no run folder in {', '.join(empty)}")
        return cls.read(*found)

    def members(self, series: Series) -> Members | None:
        """Returns all members of `series`, from any folder; None if there are none.

        Ignores runs with overridden settings, and short runs if there are longer ones.
        If the remaining runs disagree, only those that agree with the newest count.
        A seed that was trained twice counts with its newer curve, or with the longer of two that agree.
        """
        if series not in self._members:
            found = self._parts(series)
            self._members[series] = pool([members for _, members in found]) if found else None
        return self._members[series]

    def pilot(self, series: Series) -> Part | None:
        """Returns the shorter sweep that chose the rate of the runs that count, see `pilot_of`."""
        if series not in self._pilots:
            counted, longer = self._parts(series), self.members(series)
            alike = [
                (run, members)
                for run, members in self._found(series)
                if _agree(run.record.plan, counted[-1][0].record.plan, but=("updates",))
            ]
            self._pilots[series] = None if longer is None else pilot_of(alike, counted, longer)
        return self._pilots[series]

    def _parts(self, series: Series) -> list[Part]:
        """Returns the runs that count for `series`, oldest first, each with its members of that series."""
        found = that_count(self._found(series))
        return [f for f in found if _agree(f[0].record.plan, found[-1][0].record.plan)]

    def _found(self, series: Series) -> list[Part]:
        """Returns all runs of `series` with the registered settings, each with its members of that series."""
        runs = [run for run in self._runs_of.get(series.name, ()) if not run.changed]
        wanted = [(run, series.settings(default_settings(run.record))) for run in runs]
        return [(run, run.members[s]) for run, s in wanted if s in run.members]

    def lacks(self, series: Series) -> bool:
        """Returns whether `series` has no run as long as the paper's."""
        return self.covered(series) < COVERED

    def covered(self, series: Series) -> float:
        """Returns the trained fraction of the paper's frames; 0 without runs, 1 if the paper has no such experiment."""
        members, protocol = self.members(series), PAPER.get(series.env)
        if members is None:
            return 0.0
        return float(members.frames[-1] / protocol.frames) if protocol else 1.0

    def folders(self, series: Series) -> list[Path]:
        """Returns the folders of the runs that count for `series`, oldest first."""
        return [run.path for run, _ in self._parts(series)]

    def counts(self, run: RecordedRun) -> bool:
        """Returns whether the run counts for any series, or chose its rate; newer runs may have replaced it."""
        wanted = [Series.create(*run.name, **s._asdict()) for s in run.members]
        parts = [p for s in wanted for p in (*self._parts(s), self.pilot(s)) if p is not None]
        return any(run is other for other, _ in parts)

    def not_counted(self, run: RecordedRun) -> str:
        """Returns why a run does not count, in a few words; empty if it does."""
        if self.counts(run):
            return ""
        if run.changed:
            return listed(in_words(run.changed))
        wanted = [Series.create(*run.name, **s._asdict()) for s in run.members]
        long = [other for s in wanted for other, _ in that_count(self._found(s))]
        replaced = any(run is other for other in long)
        return "other settings than newer runs" if replaced else run.shortness

    def shared_frames(self, *all_series: Series) -> float:
        """Returns the last frame that all of them have, infinity if none was run."""
        found = [members for series in all_series if (members := self.members(series))]
        return min((float(members.frames[-1]) for members in found), default=np.inf)

    def finished(self, series: Series) -> bool:
        """Returns whether the runs that count for `series` have ended."""
        return any(run.record.ended for run, _ in self._parts(series))

    def schedules(self, *all_series: Series) -> list[int]:
        """Returns the planned frames of all runs that count; empty if no learning rate is annealed."""
        runs = [run for series in all_series for run, _ in self._parts(series)]
        return [run.record.planned_frames for run in runs] if any(r.anneals for r in runs) else []

    def differ_in_schedule(self, *all_series: Series) -> bool:
        """Returns whether learning rates are annealed over different numbers of frames: then no frames are comparable."""
        planned = self.schedules(*all_series) or [0]
        return min(planned) < COVERED * max(planned)

    def as_in_paper(self, series: Series, until: float = np.inf) -> Chosen | None:
        """Returns the curves at the best rate on the seeds it was chosen on, as in the paper.

        - `until`: only these first frames count, also in the choice of the rate.
        """
        members = self.members(series)
        return None if members is None else selection.as_in_paper(members.until(until))

    def unbiased(self, series: Series, until: float = np.inf) -> Chosen | None:
        """Returns the curves at the best rate, on seeds it was not chosen on if there are any; `until` as above."""
        return self._chosen(series, selection.unbiased, until)

    def best_rate(self, series: Series) -> float | None:
        """Returns the rate at which fresh seeds are trained: only at this one does `unbiased` report them."""
        members, pilot = self.members(series), self.pilot(series)
        return None if members is None else selection.swept_rate(members, pilot and pilot[1])

    def first_fresh_seed(self, series: Series) -> int:
        """Returns a seed above all that finished runs of `series` have, and the pilot that chose its rate.

        Not counted are the seeds of runs that continue with them: interrupted ones, and short ones that can be extended.
        """
        long = [*that_count(self._found(series)), *filter(None, [self.pilot(series)])]
        found = [
            members
            for run, members in self._found(series)
            if run.record.ended
            and (any(run is other for other, _ in long) or not run.can_be_extended)
        ]
        used = max((seed for some in found for _, seed in some.returns), default=-1)
        return max(selection.FIRST_FRESH_SEED, used + 1)

    def for_figures(self, series: Series) -> Chosen | None:
        """Returns the curves that figures draw."""
        return self._chosen(series, selection.for_figures)

    def _chosen(
        self, series: Series, choose: Callable[..., Chosen], until: float = np.inf
    ) -> Chosen | None:
        members = self.members(series)
        if members is None:
            return None
        pilot = self.pilot(series)
        return choose(members.until(until), pilot[1].until(until) if pilot else None)

    def analysis(self, key: AnalysisKey, method: str) -> AnalysisValues | None:
        """Returns the values of one method, or None if there are none."""
        if self.analyses is None or not (self.analyses / key.folder / VALUES).is_file():
            return None
        if key not in self._values:
            table = read_values(self.analyses / key.folder)
            self._values[key] = {str(m): _wide(part) for m, part in table.groupby("method")}
        return self._values[key].get(method)

    def descriptions(self) -> dict[AnalysisKey, dict[str, Any]]:
        """Returns the content of analysis.json for every analysis."""
        if self.analyses is None:
            return {}
        return {
            key: read_description(self.analyses / key.folder)
            for key in find_analyses(self.analyses)
        }


def _wide(table: Any) -> AnalysisValues:
    wide = table.pivot_table(index=["seed", "dimension"], columns="step", values="value")
    seeds = wide.index.get_level_values("seed").nunique()
    values = wide.to_numpy(float).reshape(seeds, -1, wide.shape[1])
    return AnalysisValues(wide.columns.to_numpy(float), values)


def _agree(one: Any, other: Any, but: Sequence[str] = ()) -> bool:
    """Returns whether two plans are equal in all fields that both have, except for their grids and the fields `but`."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one == other
    return all(_agree(one[k], other[k]) for k in (set(one) & set(other)) - {*PLURALS, *but})
