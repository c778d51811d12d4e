"""The figure of the leaderboard: scores by task, interquartile means over all tasks, and performance profiles."""

import numpy as np

from splagger.plots.draw import STYLE, encoded, plain
from splagger.plots.styles import style_of, styles_of
from splagger.stats.estimates import interquartile_mean
from splagger.stats.leaderboard import THRESHOLDS, Leaderboard


def leaderboard_picture(board: Leaderboard, kind: str = "png") -> bytes:
    """Draws a leaderboard as PNG, PDF or SVG."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):
        rows, columns = len(board.standings), len({cell.env for cell in board.cells})
        canvas = Canvas(figsize=(5.5 + 0.62 * columns, 3.4 + 0.26 * rows), layout="constrained")
        layout = canvas.add_gridspec(2, 2, height_ratios=(1.4 + 0.26 * rows, 2.4))
        _by_task(canvas.add_subplot(layout[0, :]), board)
        _means(canvas.add_subplot(layout[1, 0]), board)
        _profiles(canvas.add_subplot(layout[1, 1]), board)
    return encoded(canvas, kind)


def _labels(board: Leaderboard) -> list[str]:
    return [plain(style_of(one.method).label) for one in board.standings]


def _by_task(axes, board: Leaderboard) -> None:
    """Draws the score at the end of training, one row per method and one column per task."""
    envs = list(dict.fromkeys(cell.env for cell in board.cells))
    methods = [one.method for one in board.standings]
    scores = np.full((len(methods), len(envs)), np.nan)
    for cell in board.cells:
        if cell.method in methods:
            scores[methods.index(cell.method), envs.index(cell.env)] = interquartile_mean(cell.end)
    axes.imshow(scores, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    for (row, column), score in np.ndenumerate(scores):
        text, color = ("–", "#666666") if np.isnan(score) else (f"{score:.2f}", "white")
        color = "black" if score > 0.6 else color
        axes.text(column, row, text, ha="center", va="center", color=color, fontsize=8)
    axes.set_xticks(range(len(envs)), envs, rotation=35, ha="right", fontsize=8)
    axes.set_yticks(range(len(methods)), _labels(board), fontsize=8)
    axes.grid(False)
    axes.set_title("Score at the end of training (0: random, 1: reference)")


def _means(axes, board: Leaderboard) -> None:
    """Draws interquartile means over all shared tasks and seeds, with 95% intervals."""
    styles = styles_of([one.method for one in board.standings])
    for row, (one, style) in enumerate(zip(board.standings, styles, strict=True)):
        low, high = np.nan_to_num([one.end.low, one.end.high], nan=one.end.value)
        axes.plot([low, high], [row, row], color=style.color, linewidth=6, alpha=0.35)
        axes.plot(one.end.value, row, "o", color=style.color, markersize=5)
    axes.set_yticks(range(len(board.standings)), _labels(board), fontsize=8)
    axes.invert_yaxis()
    tasks = f"{len(board.envs)} task{'s' * (len(board.envs) > 1)}"
    axes.set(title="Interquartile mean", xlabel=f"score at the end, {tasks}, 95% interval")


def _profiles(axes, board: Leaderboard) -> None:
    """Draws the fraction of tasks and seeds above each score."""
    styles, lines = styles_of([one.method for one in board.standings]), []
    for rank, (one, style) in enumerate(zip(board.standings, styles, strict=True)):
        look = {"color": style.color, "linestyle": style.dash, "zorder": 3 - rank / 100}
        lines += axes.plot(THRESHOLDS, one.profile, **look)
    # Labels are given beside the lines: matplotlib leaves out lines whose own labels begin with "_".
    place = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5), "fontsize": 7}
    axes.legend(lines, _labels(board), **place)
    axes.set(title="Performance profile", xlabel="score τ", ylabel="fraction above τ")
    axes.set(xlim=(0, THRESHOLDS[-1]), ylim=(0, 1.03))
