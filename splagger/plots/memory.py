"""The picture of a memory's contents, from the files of the analysis. Needs no JAX."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splagger.errors import SettingError
from splagger.plots.draw import STYLE
from splagger.runs.analyses import INITIALIZATION, read_description, read_values

NEVER, OTHER, SIGNAL = range(3)  # kinds of steps that set a value
COLORS = ("#f0f0f0", "#9ecae9", "#D55E00")


class History(NamedTuple):
    """The events of one agent's meta-episode: which neuron took a new value at which step; -1 is before the first."""

    method: str
    seed: int
    neuron: np.ndarray  # [events], in order of steps
    step: np.ndarray  # [events]
    length: int
    episode_ends: list[int]
    signal_steps: list[int]


def read_histories(folder: str | Path) -> tuple[list[History], str]:
    """Returns the histories of all agents of an analysis "memory", and the name of their environment."""
    values: Any = read_values(folder)
    description = read_description(folder)
    histories = []
    for note in description["inputs"]:
        rows = values[(values["method"] == note["method"]) & (values["seed"] == note["seed"])]
        neuron, step = (rows[column].to_numpy(int) for column in ("dimension", "step"))
        events = note["steps"], note["episode_ends"], note["signal_steps"]
        histories.append(History(note["method"], note["seed"], neuron, step, *events))
    fresh = description["when"] == INITIALIZATION
    where = f"{description['options']['env']}, untrained" if fresh else description["when"]
    return histories, where


def held_since(history: History) -> np.ndarray:
    """Returns [neurons, steps]: the step that set each neuron's value after each step; -1 if none has.

    >>> one = History("splagger", 0, np.array([0, 1, 0]), np.array([-1, -1, 1]), 3, [2], [0])
    >>> held_since(one).tolist()
    [[-1, 1, 1], [-1, -1, -1]]
    """
    since = np.full((history.neuron.max() + 1, history.length), -1)
    taken = history.step >= 0
    since[history.neuron[taken], history.step[taken]] = history.step[taken]
    return np.maximum.accumulate(since, axis=1)


def draw_memory(folder: str | Path, seed: int | None = None) -> list[Path]:
    """Draws memory-METHOD.png into the folder for the first or the given seed of each method; returns the paths."""
    histories, where = read_histories(folder)
    chosen = {h.method: h for h in reversed(histories) if seed in (None, h.seed)}
    if not chosen:
        raise SettingError(f"{folder} has no seed {seed}; there are {[h.seed for h in histories]}")
    paths = []
    for method, history in sorted(chosen.items()):
        paths.append(Path(folder) / f"memory-{method}.png")
        draw_history(history, paths[-1], f"What {method} remembers · {where}")
    return paths


def draw_history(history: History, path: str | Path, title: str = "") -> None:
    """Draws two panels of a meta-episode.

    The lower panel shows every neuron over time, colored by the kind of step that set its value. The upper panel counts
    the neurons that hold a value of each step when the last action is chosen, before its transition is observed.
    """
    import matplotlib
    from matplotlib.figure import Figure

    since = held_since(history)
    decisive = max(history.length - 2, 0)
    since = since[np.argsort(since[:, decisive], kind="stable")]
    with matplotlib.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(7.2, 4.8), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2.2))
        _draw_counts(above, history, since[:, decisive])
        _draw_neurons(below, history, since)
        _annotate(above, below, history)
        figure.suptitle(title, x=0.01, ha="left", weight="bold", fontsize=11)
        figure.savefig(path, dpi=200)


def _draw_counts(axes, history: History, held: np.ndarray) -> None:
    """Draws bars at least a few pixels wide, with those of signal steps in front."""
    steps = np.arange(history.length)
    counts = np.bincount(held[held >= 0], minlength=history.length)
    signal = np.isin(steps, history.signal_steps)
    width = max(0.8, history.length / 200)
    for chosen, kind in ((~signal, OTHER), (signal, SIGNAL)):
        axes.bar(steps[chosen], counts[chosen], width, color=COLORS[kind], zorder=2 + kind)
    axes.set(ylabel="neurons that hold\na value of this step")
    axes.yaxis.get_major_locator().set_params(integer=True)
    text = f"{counts[~signal].sum()} of another step, {np.sum(held < 0)} none"
    if history.signal_steps:
        share = len(history.signal_steps) / history.length
        text = (
            f"{counts[signal].sum()} hold a value of a signal step ({share:.0%} of steps), {text}"
        )
    text = f"{len(held)} neurons at the last action: {text}"
    axes.set_title(text, fontsize=8.5, weight="normal", pad=17)


def _draw_neurons(axes, history: History, since: np.ndarray) -> None:
    """Draws one row per neuron and one column per step, with dark dots where a value is set."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    kind = np.where(np.isin(since, history.signal_steps), SIGNAL, OTHER)
    kind[since < 0] = NEVER
    axes.imshow(
        kind,
        cmap=ListedColormap(COLORS),
        vmin=0,
        vmax=2,
        aspect="auto",
        interpolation="nearest",
    )
    rows, columns = np.nonzero(since == np.arange(history.length))
    size = np.clip(400 / history.length, 1.2, 8)
    axes.scatter(columns, rows, s=size, color="black", linewidths=0, alpha=0.6)
    names = ["none yet", "another step", "a signal step"]
    shown = [i for i in range(3) if i != SIGNAL or history.signal_steps]
    handles = [Patch(color=COLORS[i], label=names[i]) for i in shown]
    axes.legend(
        handles=handles,
        title="the neuron's value was set at   (dots: a new value)",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.17),
        ncols=3,
        frameon=False,
        fontsize=8.5,
        title_fontsize=8.5,
    )
    axes.set(xlabel="step of the meta-episode", ylabel="neuron", xlim=(-0.5, history.length - 0.5))


def _annotate(above, below, history: History) -> None:
    """Draws ends of episodes as lines through both panels, and signal steps as triangles between them."""
    starts = [0, *(end + 1 for end in history.episode_ends if end + 1 < history.length)]
    for number, start in enumerate(starts, 1):
        for axes in (above, below) if start else ():
            axes.axvline(start - 0.5, color="black", linewidth=0.8, zorder=5)
        above.annotate(
            f"episode {number}",
            (start, 1),
            (2, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=8.5,
        )
    for step in history.signal_steps:
        above.plot(
            step,
            -0.06,
            marker="v",
            markersize=4,
            color=COLORS[SIGNAL],
            transform=above.get_xaxis_transform(),
            clip_on=False,
        )
