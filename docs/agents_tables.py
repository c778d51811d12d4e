"""Tables of docs/fidelity.md about single agents: how many learn, how many fall back, and what happens at a fall."""

from collections.abc import Sequence

import numpy as np
import pandas

from docs.table_parts import evidence, markdown, mean
from splagger.methods import METHODS
from splagger.paper.claims import BEYOND, learned
from splagger.plots.styles import style_of
from splagger.runs.folder import RunFolder
from splagger.stats.estimates import at_the_end, difference, estimate, interval, over_training
from splagger.stats.evidence import Series
from splagger.stats.selection import FIRST_FRESH_SEED

EXPLODED = 1000.0  # a gradient 2000 times as long as the length at which gradients are clipped
LOW = 12  # a return on T-Maze Agreement far below those of agents that have learned it


def planning_agents() -> str:
    """How agents with fresh seeds end on the Planning Game, and how high they were before."""
    return _agents("planning", ("rnn", "splagger", "splagger-nosplit", "amrl"), BEYOND, low=16)


def agreement_agents() -> str:
    """How many agents with fresh seeds learn T-Maze Agreement, how many fall back, and how they end."""
    names = (
        "splagger",
        *(f"splagger-{name}" for name in ("avgmax", "softmax", "wsoftmax", "wavg", "avg")),
        "rnn",
    )
    return _agents("t-agreement", names, learned("t-agreement"), low=LOW)


def _agents(env: str, methods: Sequence[str], level: float, low: float) -> str:
    head = ("memory", "rate", "agents", f"ever above {level:.4g}", f"below {low:g} after that")
    head += (
        "above it at the end",
        f"at the end below {low:g}",
        "mean at the end",
        "median at the end",
    )
    return markdown(head, (_agents_row(Series(env, method), level, low) for method in methods))


def _agents_row(series: Series, level: float, low: float) -> tuple[str, ...]:
    chosen = evidence().unbiased(series)
    assert chosen is not None
    ends, twentieths = at_the_end(chosen.curves), _twentieths(chosen.curves)
    above = np.maximum.accumulate(twentieths > level, axis=1)
    falls = (above & (twentieths < low)).any(axis=1)
    counts = (above[:, -1].sum(), falls.sum(), (ends > level).sum(), (ends < low).sum())
    return (
        style_of(series.method).label,
        f"{chosen.rate:g}",
        str(len(ends)),
        *map(str, counts),
        interval(estimate(mean, ends)),
        f"{np.median(ends):.2f}",
    )


def _twentieths(curves: np.ndarray) -> np.ndarray:
    """The mean returns of each agent over all windows of a twentieth of training."""
    width = curves.shape[1] // 20
    return np.lib.stride_tricks.sliding_window_view(curves, width, axis=1).mean(axis=-1)


def agreement_falls() -> str:
    """The updates at which agents with an average fall back on T-Maze Agreement: medians over the falls."""
    folders = map(RunFolder, evidence().folders(Series("t-agreement", "splagger-avg")))
    tables = [folder.curves() for folder in folders]
    recorded = pandas.concat([t for t in tables if t is not None and "reward_per_step" in t])
    agents = [agent.sort_values("update") for _, agent in recorded.groupby("seed")]
    falls = [(agent, update) for agent in agents if (update := _fall(agent["return"].to_numpy()))]
    columns = ("reward_per_step", "value_loss", "encoder_grad_norm", "policy_grad_norm", "return")
    head = (f"update ({len(falls)} falls)", "reward per step of its rollout", "value loss")
    head += ("gradient of the memory, norm", "of the policy", "return afterward")
    rows = []
    for words, part in _AROUND.items():
        found = [agent.iloc[update + part.start : update + part.stop] for agent, update in falls]
        medians = [np.median([agent[name].median() for agent in found]) for name in columns]
        rows.append((words, f"{medians[0]:.4f}", *(f"{value:.3g}" for value in medians[1:])))
    return markdown(head, rows)


def agreement_gradients() -> str:
    """How long the gradients of the memory become on T-Maze Agreement, at the best rate of each memory."""
    head = ("memory", "GRU", "agents", "longest gradient: median agent", "longest of all")
    head += (f"agents above {EXPLODED:g}", "largest error of the first ratios", "stopped")
    names = ("avg", "wavg", "softmax", "wsoftmax")
    return markdown(head, (_gradients_row(f"splagger-{name}") for name in names))


def _gradients_row(method: str) -> tuple[str, ...]:
    series = Series("t-agreement", method)
    folders = [RunFolder(folder) for folder in evidence().folders(series)]
    tables = [table for folder in folders if (table := folder.curves()) is not None]
    rate, curves = evidence().best_rate(series), pandas.concat(tables)
    fresh = curves[(curves.rate == rate) & (curves.seed >= FIRST_FRESH_SEED)]
    stopped = sum(len(record.stopped) for f in folders if (record := f.record()) is not None)
    longest = fresh.groupby("seed")["encoder_grad_norm"].max()
    return (
        style_of(method).label,
        str(METHODS[method].width),
        str(len(longest)),
        f"{longest.median():.2g}",
        f"{longest.max():.2g}",
        str((longest > EXPLODED).sum()),
        f"{fresh.first_ratio_error.max():.2g}",
        str(stopped),
    )


def agreement_difference() -> str:
    """Weighted and plain average on T-Maze Agreement: all agents, and those that were not stopped."""
    returns = {}
    for name in ("wavg", "avg"):
        series = Series("t-agreement", f"splagger-{name}")
        members, rate = evidence().members(series), evidence().best_rate(series)
        assert members is not None and rate is not None
        fresh = members.of([s for s in members.seeds(rate) if s >= FIRST_FRESH_SEED])
        ended = [np.isfinite(fresh.returns[rate, seed]).all() for seed in fresh.seeds(rate)]
        returns[name] = over_training(fresh.curves(rate)), np.array(ended)
    (weighted, ended), (plain, _) = returns["wavg"], returns["avg"]
    rows = []
    for words, kept in (("all", weighted), ("without those stopped", weighted[ended])):
        means = (interval(estimate(mean, values)) for values in (kept, plain))
        gap = interval(estimate(difference, kept, plain))
        rows.append((words, f"{len(kept)} and {len(plain)}", *means, gap))
    head = ("agents", "how many", "SplAgger-wavg, mean over training", "SplAgger-avg", "difference")
    return markdown(head, rows)


_AROUND = {
    "the 50 before": slice(-60, -10),
    "the last one before": slice(-1, 0),
    "at the fall": slice(0, 1),
    "the next one": slice(1, 2),
}


def _fall(returns: np.ndarray) -> int | None:
    """The first update after which an agent that had learned returns at most `LOW`, on its way down.

    It follows the last ten evaluations above 15 before the first twentieth of training with a lower mean than `LOW`.
    """
    twentieths = _twentieths(returns[None])[0]
    above = np.maximum.accumulate(twentieths > learned("t-agreement"))
    low = np.flatnonzero(above & (twentieths < LOW))
    if not len(low):
        return None
    end = low[0] + len(returns) // 20
    tens = np.lib.stride_tricks.sliding_window_view(returns[:end], 10).min(axis=-1)
    good = np.flatnonzero(tens > 15)[-1] + 10
    return int(good + np.flatnonzero(returns[good:] <= LOW)[0])
