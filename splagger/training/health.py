"""Which members of a run are healthy, why others are not, and when an environment is to blame."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from splagger.errors import EnvError
from splagger.ppo import faults
from splagger.ppo.settings import Config
from splagger.runs.run import Point
from splagger.training.progress import Silent

# The first minibatch of an update has the parameters of the rollout, so its probability ratios are 1 up to rounding.
# The largest error in recorded results is 0.057, except in three agents of splagger-wavg whose memory is chaotic (up to
# 3.5, see docs/fidelity.md) and in runs with another `update_noise`. Replays with wrong memories soon exceed 0.2.
MAX_RATIO_ERROR = 0.2


class Health:
    """The members that diverged, in the form of run.json, and the reasons that are known in this process.

    `name` gives a member's name in run.json.
    """

    def __init__(
        self, config: Config, points: list[Point], name: Callable[[Point], str], view: Silent
    ):
        self.config, self.view, self.name = config, view, name
        self.keep(points)
        self.stopped: dict[str, int] = {}
        self.causes: dict[str, str] = {}
        self.warned = False

    def keep(self, points: list[Point]) -> None:
        """Sets the members that train from now on."""
        self.members = {self.name(point): point for point in points}

    @property
    def alive(self) -> bool:
        return any(name not in self.stopped for name in self.members)

    def check(
        self, metrics: dict[str, np.ndarray], update: int
    ) -> Iterator[tuple[Point, dict[str, float]]]:
        """Yields (point, metrics) of each healthy member, and reports those that have just diverged.

        Raises an EnvError like `check_environment`.
        """
        self.check_environment(metrics)
        found = self._faults(metrics)
        columns = {name: column for name, column in sorted(metrics.items()) if name != "fault"}
        for index, (name, point) in enumerate(self.members.items()):
            values = {key: float(column[index]) for key, column in columns.items()}
            if name in self.stopped:
                continue
            cause = self._cause(found[index], values, update)
            if cause is None:
                self._check_ratios(point, values, update)
                yield point, values
                continue
            self.stopped[name], self.causes[name] = update, cause
            others = "the other runs continue" if self.alive else "no run is left"
            self.view.note(f"stopped: {_label(point)} diverged (NaN or infinity) {cause}; {others}")

    def failure(self) -> str:
        """Returns how the last members diverged; names at most three of them."""
        stopped = {name: self.stopped[name] for name in self.members}
        last = max(stopped.values())
        causes = [
            f"{_label(self.members[name])} {self.causes.get(name, f'at update {update}')}"
            for name, update in stopped.items()
            if update == last
        ]
        more = len(self.members) - len(causes[:3])
        named = "; ".join(causes[:3]) + (f"; and {more} more" if more else "")
        return f"every member diverged (NaN or infinity): {named}"

    def check_environment(self, metrics: dict[str, np.ndarray]) -> None:
        """Raises an EnvError if the environment is at fault for all members, or breaks its length for any."""
        members = zip(self.members, self._faults(metrics), strict=True)
        alive = [fault for name, fault in members if name not in self.stopped]
        broken = [fault for fault in alive if fault is not None and fault.is_of_environment]
        grave = broken if len(broken) == len(alive) else [f for f in broken if f.breaks_length]
        if grave:
            text = faults.describe(grave[0], self.config.env)
            raise EnvError(f"{text} (found {faults.when(grave[0])})")

    def _faults(self, metrics: dict[str, Any]) -> list[faults.Fault | None]:
        return list(metrics.get("fault", [None] * len(self.members)))

    def _cause(
        self, fault: faults.Fault | None, values: dict[str, float], update: int
    ) -> str | None:
        """Returns when and in which quantity a member diverged; None for a healthy one."""
        if fault is not None:
            return f"{faults.when(fault)}: {faults.describe(fault, self.config.env)}"
        broken = [name for name, value in values.items() if not math.isfinite(value)]
        return f"at update {update}: {broken[0]} is not finite" if broken else None

    def _check_ratios(self, point: Point, values: dict[str, float], update: int) -> None:
        """Warns once if an update does not learn from the memories that acted."""
        error = values.get("first_ratio_error", 0.0)
        if self.warned or self.config.ppo.update_noise != "stored" or error <= MAX_RATIO_ERROR:
            return
        self.warned = True
        self.view.warn(
            f"{_label(point)}, update {update}: first_ratio_error is {error:.2g}, above {MAX_RATIO_ERROR}. Before the "
            "first step of an update, all actions must have the probabilities of the rollout. Here they do not: the "
            "update learns from memories that did not act, and its results are doubtful. Look for an environment, "
            "encoder or aggregator whose results do not depend on its arguments alone"
        )


def _label(point: Point) -> str:
    return f"rate {point.rate:g}, seed {point.seed}"
