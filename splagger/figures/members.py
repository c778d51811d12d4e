"""The members of a run: one return curve for each rate and seed, and the rate that is chosen among them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from splagger.recorded import RecordedRun, RunError


class Settings(NamedTuple):
    """The numbers besides rate and seed that one run may sweep."""

    entropy_weight: float
    kl_weight: float
    temperature: float


class Members(NamedTuple):
    """Returns of agents that differ in rate and seed only, evaluated at the same frames."""

    frames: np.ndarray  # [T]
    returns: dict[tuple[float, int], np.ndarray]  # (rate, seed) → [T], NaN from where it stopped

    @property
    def rates(self) -> list[float]:
        return sorted({rate for rate, _ in self.returns}, reverse=True)

    def seeds(self, rate: float) -> list[int]:
        return sorted(seed for r, seed in self.returns if r == rate)

    def of(self, seeds: Sequence[int]) -> "Members":
        """Those with one of `seeds`."""
        return Members(self.frames, {k: v for k, v in self.returns.items() if k[1] in seeds})

    def at(self, rates: Sequence[float]) -> "Members":
        """Those with one of `rates`."""
        return Members(self.frames, {k: v for k, v in self.returns.items() if k[0] in rates})

    def curves(self, rate: float) -> np.ndarray:
        """[S, T] at one rate. An agent that stopped is worth from there what it was before training: to
        leave it out, or to keep its last good return, would hide that it failed."""
        rows = [self.returns[rate, seed] for seed in self.seeds(rate)]
        return np.array([np.where(np.isfinite(row), row, row[0]) for row in rows])


def best_rate(members: Members) -> float:
    """The rate with the highest return, averaged over all evaluations and seeds (the paper's choice).

    Rates at which some agent stopped early or is missing are chosen only if there are no others.
    """
    most = max(len(members.seeds(rate)) for rate in members.rates)

    def merit(rate):
        rows = [members.returns[rate, seed] for seed in members.seeds(rate)]
        whole = len(rows) == most and all(np.isfinite(row).all() for row in rows)
        return whole, members.curves(rate).mean()

    return max(members.rates, key=merit)


def members_of(run: RecordedRun) -> dict[Settings, Members]:
    """A run folder's curves, apart by its other settings; nothing before the first evaluation."""
    import pandas

    columns = ["frames", "rate", "seed", *Settings._fields, "return"]
    try:
        table = pandas.read_csv(run.curves, usecols=columns, dtype=float)
    except (FileNotFoundError, pandas.errors.EmptyDataError):
        return {}
    except (ValueError, EOFError, OSError) as error:
        raise RunError(f"{run.curves} is damaged ({error}); train that run again") from None
    reached = np.unique(table["frames"].to_numpy(float))
    frames = np.append(reached, _never_reached(run, reached))
    found = {}
    for settings, part in table.groupby(list(Settings._fields), sort=False):
        wide = part.pivot_table(index="frames", columns=["rate", "seed"], values="return")
        rows = {k: wide[k].reindex(frames).to_numpy(float) for k in wide.columns}
        returns = {(float(r), int(s)): row for (r, s), row in rows.items() if np.isfinite(row[0])}
        if returns:
            found[Settings(*map(float, settings))] = Members(frames, returns)
    return found


def _never_reached(run: RecordedRun, frames: np.ndarray) -> np.ndarray:
    """The evaluations that a finished run lacks, since its last agent diverged before them."""
    record = run.read()
    if not record.get("finished") or len(frames) < 2:
        return np.zeros(0)
    last, apart = frames[-1], frames[1] - frames[0]
    missing = int((record.get("arguments", {}).get("frames", last) - last) // apart)
    return last + apart * np.arange(1, missing + 1)


def own_settings(record: dict[str, Any]) -> Settings:
    """The settings a run has where nothing else is asked for: its environment's and its method's."""
    ppo, method = record["run"]["ppo"], record["run"]["method"]
    temperature = _temperature(method.get("aggregator"))
    return Settings(float(ppo["entropy"]), float(ppo["kl_weight"]), temperature)


def _temperature(aggregator: Any) -> float:
    """Of an aggregator or of the first of those it is made of that has one; 0 without."""
    if not isinstance(aggregator, dict):
        return 0.0
    inner = [_temperature(part) for part in aggregator.values()]
    return float(aggregator.get("temperature") or next(filter(None, inner), 0.0))


def pool(parts: Sequence[Members]) -> Members:
    """Members of several runs as one, at the frames that all have; later parts replace earlier ones."""
    frames = parts[0].frames
    for part in parts[1:]:
        frames = np.intersect1d(frames, part.frames)
    returns = {}
    for part in parts:
        places = np.isin(part.frames, frames)
        returns |= {key: row[places] for key, row in part.returns.items()}
    return Members(frames, returns)
