"""The tables of docs/fidelity.md: PEARL's noise, SplAgger beside the RNN on the Planning Game, long runs on MC-LS."""

from typing import Any

import numpy as np
import pandas

from docs.table_parts import ROOT, evidence, markdown, mean, measured
from splagger.plots.styles import style_of
from splagger.runs.analyses import AnalysisKey
from splagger.runs.folder import RunFolder, find_runs
from splagger.stats.estimates import (
    at_the_end,
    difference,
    estimate,
    interval,
    over_training,
    window,
)
from splagger.stats.evidence import Evidence, Series
from splagger.stats.members import best_rate
from splagger.stats.recorded import RecordedRun

MC_LS = ("splagger", "splagger-nornn", "amrl", "amrl-nornn", "pearl", "cnp", "rnn")
_SOLVED = 26.7  # return on MC-LS from which on the paper's claims call it learned


def pearl_noise() -> str:
    """PEARL on T-LS, by the noise with which the update samples its latent."""
    words = {
        "stored": "the rollout's samples (ours)",
        "fresh": "new samples (`fresh`)",
        "none": "means (`none`, as in the authors' code)",
    }
    rows = []
    for method in ("pearl", "pearl-gru"):
        runs = {_noise(run): run for run in evidence().runs if _is_noise_experiment(run, method)}
        for noise in (n for n in words if n in runs):
            (members,) = runs[noise].members.values()
            rate = best_rate(members)
            curves, last = members.curves(rate), _last_tenth(members.frames)
            numbers = f"{curves.mean():.2f}", f"{curves[:, last].mean():.2f}"
            rows.append((f"`{method}`", words[noise], f"{rate:g}", *numbers))
    head = ("encoder", "latent in the update", "best rate", "mean return over training")
    return markdown((*head, "in its last tenth"), rows)


def _noise(run: RecordedRun) -> str:
    return run.record.plan["ppo"].get("update_noise", "stored")


def _is_noise_experiment(run: RecordedRun, method: str) -> bool:
    plan = run.record.plan
    return (
        run.name == ("t-ls", method)
        and plan["seeds"] == [0, 1, 2]
        and len(plan["kl_weights"]) == 1
        and len(plan["rates"]) > 1
    )


def _last_tenth(frames: np.ndarray) -> np.ndarray:
    return np.arange(len(frames)) >= len(frames) - window(len(frames))


def _planning(method: str) -> Any:
    """The curves of a method's sweep on the Planning Game."""
    folders = find_runs(ROOT / "results" / "planning" / method)
    (sweep,) = [f for f in folders if len(f.record().plan["rates"]) > 1]
    return sweep.curves()


def planning_by_rate() -> str:
    """SplAgger and the RNN on the Planning Game, rate by rate."""
    rates = (0.003, 0.001, 0.0003, 0.0001, 0.00003)
    rows = []
    for method in ("rnn", "splagger", "splagger-nornn"):
        curves = _planning(method)
        late = curves[_last_tenth_rows(curves)]
        mean = lambda table, rate: table[table["rate"] == rate]["return"].mean()  # noqa: E731
        cells = [f"{mean(curves, rate):.2f} / {mean(late, rate):.2f}" for rate in rates]
        rows.append((f"`{method}`", *cells))
    return markdown(("method", *(f"{rate:.5f}".rstrip("0") for rate in rates)), rows)


def _last_tenth_rows(curves: Any) -> Any:
    frames = np.unique(curves["frames"])
    return curves["frames"].isin(frames[_last_tenth(frames)])


def planning_details() -> str:
    """What explains the difference between SplAgger and the RNN on the Planning Game."""
    columns = [_planning_column(method) for method in ("rnn", "splagger")]
    values = np.array([_reward_within_task(m) for m in ("rnn", "splagger")])
    rows = [(name, *(c[name] for c in columns)) for name in columns[0]]
    for index, steps in enumerate(("steps 20 to 49", "the last 30 steps")):
        cells = (f"{value:.2f}" for value in values[:, index])
        rows.append((f"small agents: return in {steps} of a task", *cells))
    return markdown(("", "RNN", "SplAgger"), rows)


def _planning_column(method: str) -> dict[str, str]:
    curves = _planning(method)
    late = curves[_last_tenth_rows(curves)]
    entropy = late[late["rate"] == 0.001]["entropy"].mean()
    large = late[late["rate"] == 0.003].groupby("seed")["return"].mean().sort_values()
    return {
        "policy entropy in the last tenth (rate 0.001)": f"{entropy:.3f} nats",
        "returns of the three seeds in the last tenth (rate 0.003)": ", ".join(
            f"{value:.2f}" for value in large
        ),
    }


def planning_bypass() -> str:
    """SplAgger on the Planning Game by the number of neurons that bypass the maximum, on fresh seeds."""
    rows, reference = [], None
    for method, changed, neurons in (
        ("rnn", "", 256),
        ("splagger", "method.width=512", 256),
        ("splagger", "method.skip=0.75", 192),
        ("splagger", "", 128),
        ("splagger", "method.skip=0.25", 64),
    ):
        curves = _planning_fresh(method, changed)
        wide = curves.pivot_table(index="seed", columns="frames", values="return").to_numpy()
        scores = over_training(wide)
        reference = scores if reference is None else reference
        behind = estimate(difference, scores, reference) if scores is not reference else None
        error = curves[_last_tenth_rows(curves)]["first_ratio_error"].mean()
        means = (interval(estimate(mean, s)) for s in (scores, at_the_end(wide)))
        cells = (str(neurons), str(len(wide)), *means, interval(behind) if behind else "–")
        label = style_of(method).label + (f", `{changed}`" if changed else "")
        rows.append((label, *cells, f"{100 * error:.2g}%"))
    head = ("memory", "neurons that bypass the maximum", "fresh seeds", "return over training")
    return markdown((*head, "at the end", "against the RNN", "first-ratio error at the end"), rows)


def _planning_fresh(method: str, changed: str) -> Any:
    """The curves of a method's fresh seeds on the Planning Game, at rate 0.001, with the setting NAME=VALUE."""
    overrides = dict([changed.split("=")]) if changed else {}
    (found,) = [
        folder
        for folder in find_runs(ROOT / "results" / "planning" / method)
        if folder.record().overrides == overrides and folder.record().plan["rates"] == [0.001]
    ]
    return found.curves()


def mc_ls_falls() -> str:
    """When the agents of the whole runs on MC-LS first solve the task, and how often they fall below that afterward."""
    head = ("memory", "rate", "agents", "solved after, million frames", "later evaluations below")
    head += ("episodes 1 and 2 in these", "value loss in these, and otherwise", "mean return")
    return markdown(head, (_mc_ls_row(method) for method in MC_LS))


def mc_ls_curves(method: str) -> pandas.DataFrame:
    """The curves of a method's whole runs on MC-LS."""
    folders = map(RunFolder, evidence().folders(Series("mc-ls", method)))
    return pandas.concat([folder.curves() for folder in folders])


def _mc_ls_row(method: str) -> tuple[str, ...]:
    curves = mc_ls_curves(method)
    solved = curves["return"] >= _SOLVED
    first = curves[solved].groupby("seed")["frames"].min()
    after = curves[curves["frames"] >= curves["seed"].map(first).fillna(np.inf)]
    low = after["return"] < _SOLVED
    label = style_of(method).label
    cells = [f"{curves['rate'].iloc[0]:g}", str(curves["seed"].nunique())]
    mean = f"{curves['return'].mean():.2f}"
    if after.empty:
        return (label, *cells, "never", "–", "–", "–", mean)
    episodes = (f"{after[low][f'return_episode_{k}'].mean():.1f}" for k in (1, 2))
    losses = (f"{part['value_loss'].mean():.3f}" for part in (after[low], after[~low]))
    span = f"{first.median() / 1e6:.2f} ({first.min() / 1e6:.2f} to {first.max() / 1e6:.2f})"
    fell = f"{100 * low.mean():.1f}%"
    return (label, *cells, span, fell, " and ".join(episodes), ", ".join(losses), mean)


def mc_ls_sampling() -> str:
    """Small SplAgger-noRNN agents on MC-LS: the most likely actions against sampled ones."""
    rows = measured("sampling")["rows"]
    agents = dict.fromkeys((row["rate"], row["seed"]) for row in rows)
    head = ("rate", "seed", "evaluations below 26.7", "lowest: episodes 1 and 2")
    head += ("the same agent, sampled", "mean of all, most likely", "sampled")
    return markdown(head, (_sampling_row(rows, *agent) for agent in agents))


def _sampling_row(rows: list[dict[str, Any]], rate: float, seed: int) -> tuple[str, ...]:
    """One agent after its first million frames; before, it has not learned the task yet."""
    own = [r for r in rows if (r["rate"], r["seed"]) == (rate, seed) and r["frames"] > 1e6]
    lowest = min(own, key=lambda row: sum(row["most_likely"]))
    below = sum(sum(row["most_likely"]) < _SOLVED for row in own)
    pairs = (" and ".join(f"{r:.1f}" for r in lowest[k]) for k in ("most_likely", "sampled"))
    means = (f"{np.mean([sum(row[k]) for row in own]):.2f}" for k in ("most_likely", "sampled"))
    return (f"{rate:g}", str(seed), f"{below} of {len(own)}", *pairs, *means)


def _reward_within_task(method: str) -> tuple[float, float]:
    """Reward in steps 20 to 49 and 70 to 99 of a task, of small agents."""
    small = Evidence([], analyses=ROOT / "results" / "analysis-small")
    values = small.analysis(AnalysisKey("adaptation", "planning"), method)
    assert values is not None
    reward = values.values.mean(axis=(0, 1))
    return float(reward[20:50].sum()), float(reward[70:100].sum())
