"""The leaderboard: methods × tasks, with scores normalized between a random and a reference policy."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from splagger.errors import RunError
from splagger.stats.estimates import (
    Estimate,
    at_the_end,
    estimate,
    improvement,
    interquartile_mean,
    interquartile_mean_of_strata,
    over_training,
    smooth,
)
from splagger.stats.evidence import Evidence, Series
from splagger.stats.ranked import comparable, left_out_of, scale_of, unscaled
from splagger.stats.returns import REFERENCE, recorded_series
from splagger.stats.selection import Chosen

if TYPE_CHECKING:
    import pandas

SOLVED = 0.9  # the score that counts as solved
THRESHOLDS = np.linspace(0, 1.1, 56)  # of performance profiles


class Cell(NamedTuple):
    """One method on one task: scores of its seeds at the best rate, on unbiased seeds where there are any."""

    env: str
    method: str
    chosen: Chosen
    training: np.ndarray  # [S], the mean score over training
    end: np.ndarray  # [S], the mean score over its last tenth
    reached: np.ndarray  # [S], the frame at which the smoothed score reached `SOLVED`, or infinity
    speed: float | None  # frames per second of the run, all of its members together


class Standing(NamedTuple):
    """One method over all tasks. Every task has the same weight, however many seeds were trained on it."""

    method: str
    tasks: int
    training: Estimate  # the interquartile mean over tasks and seeds
    end: Estimate
    improvement: Estimate | None  # the mean probability over tasks that it beats the reference
    solved: float  # the share of seeds, averaged over tasks, whose score at the end is at least `SOLVED`
    profile: np.ndarray  # the share of seeds, averaged over tasks, whose score at the end exceeds each of `THRESHOLDS`


class Leaderboard(NamedTuple):
    """All cells, the tasks that every method has, and the methods' standings, the best first."""

    cells: list[Cell]
    envs: list[str]
    standings: list[Standing]
    reference: str
    left_out: str = ""  # the runs that are not ranked, and why


def leaderboard(
    *roots: str | Path,
    methods: Sequence[str] = (),
    envs: Sequence[str] = (),
    reference: str | None = None,
) -> Leaderboard:
    """Returns the leaderboard of the runs below `roots`.

    - `methods`, `envs`: those to include; all by default. Only tasks with a known scale count.
    - `reference`: the method that the others are compared with; by default SplAgger, if it was run.

    Standings are over the tasks on which all methods were run, and over the frames of each task that all of them have.
    Runs with other settings than the registered ones are not ranked. On a task with finished runs, unfinished ones are
    not, and where learning rates are annealed, neither are shorter runs. `left_out` names all of these. Raises a RunError
    if there is no such task, or no run of `reference`.
    """
    return leaderboard_of(Evidence.read_every(*roots), methods, envs, reference)


def leaderboard_of(
    evidence: Evidence,
    methods: Sequence[str] = (),
    envs: Sequence[str] = (),
    reference: str | None = None,
) -> Leaderboard:
    """Returns the leaderboard of runs that were read already; see `leaderboard`."""
    asked = [
        run
        for run in evidence.runs
        if run.record.env in (envs or [run.record.env])
        and run.record.method in (methods or [run.record.method])
    ]
    known = {run.name for run in asked if scale_of(run.record.env)}
    series = comparable(evidence, [s for s in recorded_series(evidence) if s.name in known])
    left_out = left_out_of(evidence, asked, series)
    shortest = _shortest(evidence, series)
    cells = [_cell(evidence, one, shortest[one.env]) for one in series]
    names = list(dict.fromkeys(methods)) or list(dict.fromkeys(c.method for c in cells))
    have = {(cell.env, cell.method) for cell in cells}
    tasks = dict.fromkeys(cell.env for cell in cells)
    for env in envs:
        if scale_of(env) is None:
            raise RunError(unscaled(env))
    missing = [env for env in envs if env not in tasks]
    if missing:
        there = f"no ranked run on {', '.join(missing)}; there are {', '.join(tasks) or 'none'}"
        raise RunError(there + (f"; {left_out}" if left_out else ""))
    shared = [env for env in tasks if all((env, name) in have for name in names)]
    if not shared:
        raise RunError(_nothing_shared(have, names) + (f"; {left_out}" if left_out else ""))
    if reference is not None and reference not in names:
        raise RunError(f"no run of {reference!r}; there are {', '.join(sorted(names))}")
    reference = reference or REFERENCE
    standings = [_standing(name, shared, cells, reference) for name in names]
    standings.sort(key=lambda standing: -standing.end.value)
    return Leaderboard(cells, shared, standings, reference, left_out)


def normalized(env: str, returns: np.ndarray) -> np.ndarray:
    """Returns scores: 0 is a random policy, 1 the reference policy.

    >>> normalized("t-ls", np.array([2.0, 9.0, 16.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    scale = scale_of(env)
    assert scale is not None, f"{env} has no scale"
    return (returns - scale.guess) / (scale.best - scale.guess)


def frames_to_reach(frames: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Returns, for each curve [S, T], the first frame at which its smoothed score is at least `SOLVED`, or infinity.

    >>> frames_to_reach(np.array([0, 10, 20]), np.array([[0.0, 1.0, 0.95], [0.0, 0.0, 0.8]])).tolist()
    [10.0, inf]
    """
    reached = np.array([smooth(curve) for curve in scores]) >= SOLVED
    first = np.where(reached.any(1), reached.argmax(1), scores.shape[1])
    return np.append(frames.astype(float), np.inf)[first]


def _shortest(evidence: Evidence, series: Sequence[Series]) -> dict[str, float]:
    """Returns the last frame of each task that all methods have, so that no method is credited with longer training."""
    last = {one: float(found.frames[-1]) for one in series if (found := evidence.members(one))}
    return {
        env: min(f for one, f in last.items() if one.env == env) for env in {s.env for s in last}
    }


def typical(reached: np.ndarray) -> float:
    """Returns the upper median of the frames, which is that of some seed; infinity if half of the seeds never got there.

    >>> typical(np.array([40.0, 10.0, np.inf, 20.0]))
    40.0
    """
    return float(np.sort(reached)[len(reached) // 2])


def _cell(evidence: Evidence, series: Series, until: float) -> Cell:
    chosen = evidence.unbiased(series, until)
    assert chosen is not None  # recorded series have runs
    scores = normalized(series.env, chosen.curves)
    return Cell(
        series.env,
        series.method,
        chosen,
        over_training(scores),
        at_the_end(scores),
        frames_to_reach(chosen.frames, scores),
        _speed(evidence, series),
    )


def _speed(evidence: Evidence, series: Series) -> float | None:
    """Returns the frames per second of the newest run that recorded them."""
    runs = {run.path: run for run in evidence.runs}
    speeds = [runs[path].record.frames_per_second for path in evidence.folders(series)]
    known = [speed for speed in speeds if speed]
    return known[-1] if known else None


def _standing(name: str, envs: list[str], cells: list[Cell], reference: str) -> Standing:
    found = {(cell.env, cell.method): cell for cell in cells}
    mine = [found[env, name] for env in envs]
    over_tasks = lambda share: np.mean([share(cell.end) for cell in mine], axis=0)  # noqa: E731
    others = [cell for env in envs if (cell := found.get((env, reference)))]
    better = None
    # One seed gives no probability, as in `compare`.
    several = min(len(cell.training) for cell in (*mine, *others)) > 1
    if name != reference and len(others) == len(mine) and several:
        better = _improvement(mine, others)
    return Standing(
        name,
        len(envs),
        estimate(interquartile_mean_of_strata, *(cell.training for cell in mine)),
        estimate(interquartile_mean_of_strata, *(cell.end for cell in mine)),
        better,
        float(over_tasks(lambda end: (end >= SOLVED).mean())),
        over_tasks(lambda end: (end[:, None] > THRESHOLDS).mean(0)),
    )


def _improvement(mine: list[Cell], others: list[Cell]) -> Estimate:
    """Returns the probability that a seed of `mine` beats one of `others` over training, averaged over tasks."""

    def average(*strata):
        half = len(strata) // 2
        pairs = zip(strata[:half], strata[half:], strict=True)
        return np.mean([improvement(a, b) for a, b in pairs], axis=0)

    return estimate(average, *(cell.training for cell in (*mine, *others)))


def _nothing_shared(have: set[tuple[str, str]], names: list[str]) -> str:
    if not have:
        return (
            "no run to rank: no run of these methods with the registered settings of a task with a known scale "
            "(`splagger compare` needs no scale)"
        )
    absent = [name for name in names if not any(method == name for _, method in have)]
    if absent:
        return f"no run of {', '.join(absent)} on a task with a known scale"
    return f"no task on which all of {', '.join(names)} were run; choose some with --methods"


def table(board: Leaderboard) -> "pandas.DataFrame":
    """Returns one row per method and task, and one per method over all shared tasks (`env` is empty)."""
    import pandas

    return pandas.DataFrame([*map(_over_all, board.standings), *map(_by_task, board.cells)])


def _over_all(one: Standing) -> dict[str, Any]:
    row = {"env": "", "method": one.method, "tasks": one.tasks}
    row |= _columns("training", one.training) | _columns("end", one.end)
    better = one.improvement
    return row | (_columns("improvement", better) if better else {}) | {"solved": one.solved}


def _by_task(cell: Cell) -> dict[str, Any]:
    training = estimate(interquartile_mean, cell.training)
    row = {"env": cell.env, "method": cell.method, "tasks": 1, "rate": cell.chosen.rate}
    row |= {"seeds": len(cell.training), "source": cell.chosen.source}
    row |= {"diverged": cell.chosen.diverged}
    row |= _columns("training", training)
    row |= _columns("end", estimate(interquartile_mean, cell.end))
    row |= {"solved": float((cell.end >= SOLVED).mean())}
    return row | {
        "frames_to_reach": typical(cell.reached),
        "frames": int(cell.chosen.frames[-1]),
        "frames_per_second": cell.speed,
    }


def _columns(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
