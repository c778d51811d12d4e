"""Races: at set fractions of training, rates that are clearly behind stop, so that only the others cost time.

A rate is clearly behind if each of its seeds is below every seed of the leading rate: in the mean return so far, and in
the last quarter of it by more than `RACE_MARGIN` of what the leading rate has gained since the start. The leading rate
is the one with the highest mean return so far. Agents that diverged count with their return before training, and their
rate leads only if every other rate has such agents, too. `benchmarks/race.py` replays this rule on all recorded sweeps.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from splagger.runs.axes import RACE_AT, RACE_MARGIN, SETTINGS
from splagger.runs.named_arrays import named_leaves
from splagger.runs.run import Point, Run
from splagger.training.program import Program, resized


def clearly_behind(curves: Mapping[Any, np.ndarray], margin: float = RACE_MARGIN) -> list[Any]:
    """Returns the keys of all curves [seeds, evaluations] that are clearly behind those of the leading key.

    Curves are NaN after an agent has diverged.

    >>> fast, slow = np.linspace(0, 8, 9), np.linspace(0, 4, 9)
    >>> clearly_behind({"fast": np.stack([fast, fast]), "slow": np.stack([slow, slow])})
    ['slow']
    """
    diverged = {key: ~np.isfinite(rows[:, -1]) for key, rows in curves.items()}
    whole = [key for key in curves if not diverged[key].any()]
    leaders = whole or [key for key in curves if not diverged[key].all()]
    if not leaders:
        return []
    curves = {k: np.where(np.isfinite(rows), rows, rows[:, :1]) for k, rows in curves.items()}
    window = max(1, next(iter(curves.values())).shape[1] // 4)
    so_far = {key: rows.mean(axis=1) for key, rows in curves.items()}
    recent = {key: rows[:, -window:].mean(axis=1) for key, rows in curves.items()}
    leader = max(leaders, key=lambda key: so_far[key].mean())
    gained = abs(recent[leader].mean() - curves[leader][:, 0].mean())
    return [
        key
        for key in curves
        if so_far[key].max() < so_far[leader].min()
        and recent[key].max() < recent[leader].min() - margin * gained
    ]


class Race:
    """The members of a run that still train, in groups that differ in their seeds only.

    With `run.race`, one program for the size of a group trains the groups one after another, so that no member's
    rounding depends on how many others train. Otherwise all members are one group. Rates race against each other for
    each combination of the other settings.
    """

    def __init__(self, run: Run):
        updates, interval = run.config.updates, run.config.ppo.eval_interval
        rounds = [math.ceil(at * updates / interval) * interval for at in RACE_AT]
        self.rounds = {update for update in rounds if update < updates} if run.race else set()
        self.races, self.members = run.race, run.points
        size = len(run.seeds) if run.race else run.size
        self.groups = [run.points[start : start + size] for start in range(0, run.size, size)]
        self.states: dict[str, np.ndarray] | None = None  # of all members, once one has stopped

    @property
    def points(self) -> list[Point]:
        """The members that still train, in the order of the grid."""
        return [point for group in self.groups for point in group]

    def program(self, of_one_group: Program) -> Program:
        """Returns the program of all groups that still train."""
        return join(of_one_group, self.groups) if self.races else of_one_group

    def losers(self, rows: Sequence[Mapping[str, Any]], update: int) -> list[list[Point]]:
        """Returns the groups that stop after the evaluation of `update`; `rows` are those of curves.csv."""
        if update not in self.rounds:
            return []
        curves = _curves(rows, self.points)
        races: dict[Any, dict[float, np.ndarray]] = {}
        for group in self.groups:
            races.setdefault(_settings(group[0]), {})[group[0].rate] = np.array(
                [curves[point] for point in group]
            )
        behind = {(key, rate) for key, rates in races.items() for rate in clearly_behind(rates)}
        return [group for group in self.groups if (_settings(group[0]), group[0].rate) in behind]

    def stop(self, losers: Sequence[Sequence[Point]], states: Any) -> Any:
        """Keeps the states of groups that stop; returns those of the others.

        - `states`: of all members that trained so far, as arrays with a leading member axis.
        """
        self.states = {name: leaf.copy() for name, leaf in named_leaves(self.whole(states)).items()}
        lost = [point for group in losers for point in group]
        kept = [index for index, point in enumerate(self.points) if point not in lost]
        self.groups = [group for group in self.groups if group not in losers]
        return jax.tree.map(lambda leaf: leaf[np.array(kept)], states)

    def whole(self, states: Any) -> Any:
        """Adds the states of members that have stopped; the result has all members in the order of the grid."""
        if self.states is None:
            return states
        rows = [self.members.index(point) for point in self.points]
        for name, leaf in named_leaves(states).items():
            self.states[name][rows] = leaf
        return self.states


def join(program: Program, groups: Sequence[Sequence[Point]]) -> Program:
    """Returns a program that runs `program` for each of several groups of equal size, one after another.

    Its state is a list with the state of each group. Saved states and metrics have all members.
    """
    parts = [program.bind(group) for group in groups]
    size = len(groups[0])

    def evaluate(states):
        return _joined([part.evaluate(state) for part, state in zip(parts, states, strict=True)])

    def block(states):
        done = [part.block(state) for part, state in zip(parts, states, strict=True)]
        return [state for state, _ in done], _joined([metrics for _, metrics in done])

    def pack(states):
        packed = [part.pack(state) for part, state in zip(parts, states, strict=True)]
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *packed)

    def unpack(saved):
        return [
            part.unpack(jax.tree.map(lambda leaf, i=i: leaf[i * size : (i + 1) * size], saved))
            for i, part in enumerate(parts)
        ]

    return program._replace(
        init=lambda: [part.init() for part in parts],
        evaluate=evaluate,
        block=block,
        pack=pack,
        unpack=unpack,
        example=resized(program.example, size * len(groups)),
    )


def _joined(metrics: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([one[name] for one in metrics]) for name in metrics[0]}


def _settings(point: Point) -> tuple[float, ...]:
    return tuple(getattr(point, axis.name) for axis in SETTINGS)


def _curves(rows: Sequence[Mapping[str, Any]], points: Sequence[Point]) -> dict[Point, np.ndarray]:
    """Returns the returns of all evaluations of `points`; NaN after an agent has diverged."""
    index = {update: i for i, update in enumerate(sorted({row["update"] for row in rows}))}
    curves = {point: np.full(len(index), np.nan) for point in points}
    for row in rows:
        point = Point(*(row[name] for name in Point._fields))
        if point in curves:
            curves[point][index[row["update"]]] = row["return"]
    return curves
