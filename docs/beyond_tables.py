"""The tables of docs/beyond.md, made from recorded runs, analyses and benchmarks."""

import functools as ft

import numpy as np
import pandas

import splagger
from docs.table_parts import ROOT, evidence, markdown, measured
from splagger.plots.styles import style_of
from splagger.report.leaderboard import scores_table, standings_table
from splagger.runs.analyses import read_values
from splagger.runs.folder import RunFolder, find_runs
from splagger.stats.estimates import (
    Estimate,
    at_the_end,
    estimate,
    interquartile_mean,
    interval,
    over_training,
    window,
)
from splagger.stats.evidence import Series
from splagger.stats.leaderboard import Leaderboard, leaderboard_of
from splagger.stats.members import members_of

ALONE = ("rnn", "mingru", "lru", "mlstm")
SPLIT = ("splagger", "splagger-mingru", "splagger-lru", "splagger-mlstm")
ENDLESS = ("splagger", "splagger-lru", "splagger-mingru", "lru", "amrl", "rnn", "mingru", "cnp")
ENDLESS += ("lstm", "transformer", "memoryless")

# The leaderboard: all methods were run on all of these tasks.
TASKS = ("bandit-5", "dark-room", "goal-grid", "key-to-door", "point-robot", "t-endless", "t-ls")
TASKS += ("tabular-mdp",)
RANKED = ("splagger", "rnn", "amrl", "cnp", "mingru", "splagger-mingru", "lru", "splagger-lru")
RANKED += ("lstm", "transformer", "memoryless")
# In tabular MDPs, ordered by their best returns at the end.
TABULAR = ("splagger-nornn", "splagger-mingru", "splagger", "mingru", "lstm", "transformer")
TABULAR += ("splagger-lru", "rnn", "amrl", "lru", "cnp", "memoryless")


def beyond_encoders() -> str:
    """Returns of encoders alone and split on T-LS, on fresh seeds."""
    return _returns("t-ls", (*ALONE, *SPLIT))


def beyond_endless() -> str:
    """Returns on the Endless T-Maze."""
    return _returns("t-endless", ENDLESS)


def beyond_arms() -> str:
    """Returns on the bandit with 50 arms."""
    return _returns("bandit-50", ("rnn", "splagger", "splagger-mingru", "splagger-lru", "lru"))


LAPS = ("rnn", "splagger", "splagger-nosplit", "splagger-nornn")


def beyond_laps() -> str:
    """How often small agents open the right door of the Endless T-Maze in more laps than in training."""
    rows = []
    for method in LAPS:
        found = [row for row in measured("endless")["rows"] if row["method"] == method]
        late = [row["by_lap"][-1] for row in found]
        cells = [_share([row[name] for row in found]) for name in ("as_trained", "without_actions")]
        rows.append((style_of(method).label, cells[0], _share(late), cells[1]))
    head = ("memory", "laps 1 to 8", f"lap {measured('endless')['laps']}")
    return markdown(
        (*head, "laps 1 to 8, if the memory does not see the actions in the corridor"), rows
    )


def _share(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def beyond_parts() -> str:
    """Which part of each small SplAgger agent holds the signal of the Endless T-Maze."""
    rows = [
        (
            f"{row['seed']}",
            *(f"{row[name]:.2f}" for name in ("as_trained", "without_bypass", "without_aggregate")),
            f"{row['by_lap'][-1]:.2f}",
        )
        for row in measured("endless")["rows"]
        if row["method"] == "splagger"
    ]
    head = ("seed", "unchanged", "bypass frozen", "maximum frozen")
    return markdown((*head, f"unchanged, in lap {measured('endless')['laps']}"), rows)


def minigrid_memory() -> str:
    """Returns with and without memory on MiniGrid's MemoryS7."""
    found = splagger.compare(ROOT / "results" / "gym-MiniGrid-MemoryS7-v0")
    rows = [
        (
            style_of(row.method).label,
            f"{row.frames / 1e6:.3g} M",
            f"{row.seeds}",
            interval(Estimate(row.training, row.training_low, row.training_high)),
            interval(Estimate(row.end, row.end_low, row.end_high)),
        )
        for row in found.itertuples()
    ]
    return markdown(("method", "frames", "seeds", "return over training", "at the end"), rows)


def beyond_scores() -> str:
    """Scores of all methods on all tasks, the best method first."""
    return scores_table(board()).markdown()


def beyond_episodes() -> str:
    """Returns by episode in a tabular MDP at the end of training, at the two best rates of each memory, and the entropy."""
    episodes = (1, 2, 5, 10)
    columns = [f"return_episode_{episode}" for episode in episodes]
    rows = []
    for method in TABULAR:
        folders = map(RunFolder, evidence().folders(Series("tabular-mdp", method)))
        wanted = ["frames", "rate", "seed", "return", "entropy", *columns]
        curves = pandas.concat([folder.curves(wanted) for folder in folders])
        frames = np.unique(curves["frames"])
        last = curves[curves["frames"].isin(frames[-window(len(frames)) :])].groupby("rate")
        means, seeds = last.mean(), last["seed"].nunique()
        for rate in means["return"].nlargest(2).index:
            row = means.loc[rate]
            numbers = [f"{row[c]:.1f}" for c in columns]
            rest = f"{row['return']:.1f}", f"{row['entropy']:.2f}", f"{seeds[rate]}"
            rows.append((style_of(method).label, f"{rate:g}", *numbers, *rest))
    head = ("memory", "rate", *(f"episode {e}" for e in episodes))
    return markdown((*head, "all ten", "policy entropy (nats)", "seeds"), rows)


def beyond_small() -> str:
    """Returns of agents with the compact network in tabular MDPs."""
    rows = []
    for folder in find_runs(ROOT / "results" / "small-networks" / "tabular-mdp"):
        record = folder.record()
        (members,) = members_of(folder, record).values()
        curves = members.curves(*members.rates)
        means = [numbers(curves).mean() for numbers in (over_training, at_the_end)]
        seeds = ", ".join(f"{end:.1f}" for end in at_the_end(curves))
        settings = f"{record.plan['ppo']['epochs']}", f"{members.frames[-1] / 1e6:.1f} M"
        numbers = [f"{mean:.1f}" for mean in means]
        rows.append((style_of(record.name[1]).label, *settings, *numbers, seeds))
    rows.sort(key=lambda row: -float(row[3]))
    head = ("memory", "epochs", "frames", "return over training", "at the end")
    return markdown((*head, "its three agents"), rows)


@ft.cache
def board() -> Leaderboard:
    return leaderboard_of(evidence(), methods=RANKED, envs=TASKS)


def beyond_standings() -> str:
    """All methods over all tasks, the best first."""
    return standings_table(board()).markdown()


def beyond_speed() -> str:
    """Speed and memory of split encoders, from benchmarks/results/encoders-gpu.json."""
    rows = sorted(
        measured("encoders-gpu"), key=lambda r: (r["settings"].get("ppo.steps", 0), r["runs"])
    )
    found = {(_work(row), row["method"]): row for row in rows}
    table = [
        (work, *(_speed(found.get((work, method))) for method in SPLIT))
        for work in dict.fromkeys(work for work, _ in found)
    ]
    return markdown(("frames/s", *(style_of(method).label for method in SPLIT)), table)


def _speed(row: dict | None) -> str:
    if row is None:
        return "not measured"
    return f"{row['frames_per_second']:,.0f} ({row['peak_device_memory_gb']:.2g} GB)"


def beyond_compilation() -> str:
    """Compile times of programs that compiled alone, from the same file."""
    rows = [
        (style_of(row["method"]).label, f"{row['compile_seconds']:.1f} s")
        for row in measured("encoders-gpu")
        if row["compiled_alone"]
    ]
    return markdown(("15 runs, compiled alone", "compilation"), rows)


def _work(row: dict) -> str:
    steps = row["settings"].get("ppo.steps")
    return (
        f"1 run, rollouts of {steps:,} steps" if steps else f"{row['runs']} runs, as in the paper"
    )


def _returns(env: str, methods: tuple[str, ...]) -> str:
    rows = []
    for method in methods:
        chosen = evidence().unbiased(Series(env, method))
        assert chosen is not None
        numbers = [over_training(chosen.curves), at_the_end(chosen.curves)]
        texts = [interval(estimate(interquartile_mean, n), ".2f") for n in numbers]
        seeds = f"{len(chosen.curves)} ({chosen.source})"
        rows.append((style_of(method).label, *texts, f"{chosen.rate:g}", seeds))
    return markdown(("memory", "return over training", "at the end", "rate", "seeds"), rows)


def beyond_gradients() -> str:
    """The norm of the gradient with respect to the first input, by the number of later inputs."""
    table = read_values(ROOT / "results" / "analysis-beyond" / "gradient-first" / "initialization")
    steps = (0, 20, 50, 99)
    rows = []
    for method in dict.fromkeys(table["method"]):
        part = table[table["method"] == method]
        means = [part[part["step"] == step]["value"].mean() for step in steps]
        rows.append((style_of(method).label, *(_small(mean) for mean in means)))
    return markdown(("untrained memory", *(f"{step} later inputs" for step in steps)), rows)


def _small(number: float) -> str:
    return "0" if number == 0 else f"{number:.2g}" if number >= 1e-3 else f"10{_power(number)}"


def _power(number: float) -> str:
    digits = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return f"{round(np.log10(number))}".translate(digits)
