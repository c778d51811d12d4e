"""Draws the pictures of docs/beyond.md: `python -m docs.draw_beyond`."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import splagger
from docs.beyond_tables import LAPS, board
from docs.table_parts import measured
from splagger.plots.draw import STYLE, encoded
from splagger.plots.leaderboard import leaderboard_picture
from splagger.plots.styles import style_of

IMAGES = Path(__file__).parent / "images" / "beyond"
RESULTS = Path("results")
ENCODERS = (
    "rnn",
    "mingru",
    "lru",
    "mlstm",
    "splagger",
    "splagger-mingru",
    "splagger-lru",
    "splagger-mlstm",
)
ENDLESS = ("rnn", "mingru", "splagger", "splagger-mingru", "amrl", "cnp", "memoryless")


def laps_picture(trained: int = 8) -> bytes:
    """Returns how often each small agent opens the right door in each lap of the Endless T-Maze."""
    rows = measured("endless")["rows"]
    with matplotlib.rc_context(STYLE):
        canvas = Figure(figsize=(9.6, 2.6), layout="constrained")
        panels = canvas.subplots(1, len(LAPS), sharey=True)
        for axes, method in zip(panels, LAPS, strict=True):
            style = style_of(method)
            axes.axvspan(0.5, trained + 0.5, color="#eef1f5", zorder=0)
            axes.axhline(0.5, color="#5f6b7a", linestyle=":", linewidth=1)
            for row in (row for row in rows if row["method"] == method):
                laps = np.arange(1, len(row["by_lap"]) + 1)
                axes.plot(laps, row["by_lap"], color=style.color, linewidth=1.2, alpha=0.8)
            axes.set(xlabel="lap", title=style.label, xlim=(0.5, len(laps) + 0.5), ylim=(0.4, 1.03))
        panels[0].set_ylabel("right doors")
        panels[0].annotate("laps of training", (1.2, 0.43), fontsize=8, color="#5f6b7a")
        panels[-1].annotate("guessing", (20, 0.43), fontsize=8, color="#5f6b7a")
        return encoded(canvas, "svg")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "laps.svg").write_bytes(laps_picture())
    for env, methods in (("t-ls", ENCODERS), ("t-endless", ENDLESS)):
        splagger.plot(*(RESULTS / env / m for m in methods), path=IMAGES / f"{env}.svg")
    splagger.plot(RESULTS / "gym-MiniGrid-MemoryS7-v0", path=IMAGES / "minigrid.svg")
    (IMAGES / "leaderboard.svg").write_bytes(leaderboard_picture(board(), "svg"))


if __name__ == "__main__":
    main()
