"""The leaderboard as tables and as files: a page, a figure and a CSV."""

import math
from pathlib import Path

from splagger.files.storage import write_output, writing
from splagger.plots.leaderboard import leaderboard_picture
from splagger.plots.styles import style_of
from splagger.stats.estimates import estimate, interquartile_mean, interval
from splagger.stats.leaderboard import SOLVED, Cell, Leaderboard, Standing, table, typical
from splagger.tables import Table


def standings_table(board: Leaderboard) -> Table:
    """Returns one row per method over all shared tasks, the best first."""
    head = ("method", "score at the end", "score over training", f"≥ {SOLVED:g} at the end")
    reference = style_of(board.reference).label
    rows = [_standing_row(one) for one in board.standings]
    title = f"Interquartile means over {', '.join(board.envs)}"
    return Table(title, (*head, f"P(better than {reference})"), rows)


def _standing_row(one: Standing) -> tuple[str, ...]:
    better = interval(one.improvement) if one.improvement else "–"
    scores = interval(one.end), interval(one.training)
    return style_of(one.method).label, *scores, f"{one.solved:.0%}", better


def scores_table(board: Leaderboard) -> Table:
    """Returns the scores at the end: one row per method, the best first, and one column per task."""
    found = {(c.method, c.env): f"{interquartile_mean(c.end):z.2f}" for c in board.cells}
    envs = list(dict.fromkeys(cell.env for cell in board.cells))
    methods = [standing.method for standing in board.standings]
    rows = [(style_of(m).label, *(found.get((m, env), "–") for env in envs)) for m in methods]
    return Table("Scores at the end", ("method", *envs), rows)


def tasks_table(board: Leaderboard) -> Table:
    """Returns one row per method and task."""
    head = ("environment", "method", "score at the end", "rate", "seeds", "frames")
    rows = [_task_row(cell) for cell in board.cells]
    return Table("By task", (*head, f"frames to {SOLVED:g}", "frames/s"), rows)


def _task_row(cell: Cell) -> tuple[str, ...]:
    reached = typical(cell.reached)
    return (
        cell.env,
        style_of(cell.method).label,
        interval(estimate(interquartile_mean, cell.end)),
        f"{cell.chosen.rate:g}",
        cell.chosen.seeds,
        f"{cell.chosen.frames[-1]:,.0f}",
        f"{reached:,.0f}" if math.isfinite(reached) else "not reached",
        f"{cell.speed:,.0f}" if cell.speed else "–",
    )


def write_leaderboard(board: Leaderboard, folder: Path) -> list[Path]:
    """Writes leaderboard.md, leaderboard.png and leaderboard.csv; returns their paths."""
    page, figure, numbers = (folder / f"leaderboard.{kind}" for kind in ("md", "png", "csv"))
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_output(figure, leaderboard_picture(board))
        write_output(numbers, table(board).to_csv(index=False))
        write_output(page, _page(board))
    return [page, figure, numbers]


def _page(board: Leaderboard) -> str:
    about = (
        "Scores are returns, 0 for a random policy and 1 for the reference policy of each task. Each method is shown at "
        "its best learning rate, on seeds on which the rate was not chosen where there are any. The methods of a task "
        "are compared over the frames that all of them have. Curves are smoothed over a tenth of these for the frames to "
        f"a score of {SOLVED:g}. Intervals are 95% bootstrap intervals; seeds are resampled within each task."
    )
    left_out = f"N{board.left_out[1:]}." if board.left_out else ""  # "not ranked: …"
    parts = ["# Leaderboard", about, *filter(None, [left_out])]
    parts += ["![Leaderboard](leaderboard.png)"]
    for one in (standings_table(board), scores_table(board), tasks_table(board)):
        parts += [f"## {one.title}", one.markdown()]
    return "\n\n".join(parts) + "\n"
