"""Replays races on all recorded sweeps: how often the same rate is chosen, what is saved, and what is lost.

    python -m benchmarks.race

The rule of `splagger.training.race` is compared with successive halving, which keeps three, two and one of five rates.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from splagger.runs.axes import RACE_AT, RACE_MARGIN
from splagger.runs.folder import find_runs
from splagger.runs.provenance import provenance
from splagger.stats.members import Members, best_rate, members_of
from splagger.training.race import clearly_behind

OUTPUT = Path(__file__).parent / "results" / "race.json"
Rule = Callable[
    [Mapping[float, np.ndarray], float], list[float]
]  # curves so far, fraction → who stops


def recorded_sweeps(root: str = "results") -> list[tuple[str, Members]]:
    """Returns all recorded sweeps of at least four rates, by name."""
    found = []
    for folder in find_runs(root):
        record = folder.record()
        for settings, members in members_of(folder, record).items():
            if len(members.rates) >= 4 and len(members.frames) >= 20:
                words = [f"{k}={v:g}" for k, v in settings._asdict().items()]
                found.append((" ".join([*record.name, folder.path.name, *words]), members))
    return found


def replay(members: Members, rule: Rule) -> tuple[float, float]:
    """Returns the rate that a race chooses, and its cost as a fraction of the whole sweep."""
    evaluations, running, cost, last = len(members.frames), list(members.rates), 0, 0
    for at in RACE_AT:
        now = max(2, round(at * evaluations))
        cost, last = cost + (now - last) * len(running), now
        stopped = rule({rate: members.curves(rate)[:, :now] for rate in running}, at)
        running = [rate for rate in running if rate not in stopped]
    cost += (evaluations - last) * len(running)
    return best_rate(members.at(running)), cost / (evaluations * len(members.rates))


def halving(curves: Mapping[float, np.ndarray], at: float) -> list[float]:
    """Stops all but the best three, two and one."""
    best = sorted(curves, key=lambda rate: -curves[rate].mean())
    return best[3 - RACE_AT.index(at) :]


def regret(members: Members, rate: float) -> float:
    """Returns how much less `rate` earns over training than the best one, as a fraction of what the best one gains."""
    best = members.curves(best_rate(members))
    gain = max(best.max() - best[:, 0].mean(), 1e-9)
    return float((best.mean() - members.curves(rate).mean()) / gain)


def measure(sweeps: list[tuple[str, Members]], rule: Rule) -> dict:
    """Replays one rule on all sweeps."""
    replays = {name: (members, *replay(members, rule)) for name, members in sweeps}
    other = {name: r for name, (m, r, _) in replays.items() if r != best_rate(m)}
    return {
        "sweeps": len(replays),
        "same_rate_chosen": len(replays) - len(other),
        "mean_cost": round(float(np.mean([cost for *_, cost in replays.values()])), 3),
        "mean_cost_by_environment": {
            env: round(
                float(np.mean([c for n, (*_, c) in replays.items() if n.split()[0] == env])), 3
            )
            for env in dict.fromkeys(name.split()[0] for name in replays)
        },
        "largest_regret": round(max(regret(m, rate) for m, rate, _ in replays.values()), 4),
        "other_choices": {n: round(regret(replays[n][0], r), 4) for n, r in other.items()},
    }


def main() -> None:
    sweeps = recorded_sweeps()
    rules: dict[str, Rule] = {
        f"clearly behind, margin {RACE_MARGIN}": lambda curves, _: clearly_behind(curves),
        "clearly behind, no margin": lambda curves, _: clearly_behind(curves, 0.0),
        "successive halving": halving,
    }
    found = {name: measure(sweeps, rule) for name, rule in rules.items()}
    origin = {"rounds": list(RACE_AT), "provenance": provenance("python -m benchmarks.race")}
    result: dict[str, Any] = found | origin
    OUTPUT.write_text(json.dumps(result, indent=2) + "\n")
    for name, row in found.items():
        print(name, {k: v for k, v in row.items() if k != "other_choices"})


if __name__ == "__main__":
    main()
