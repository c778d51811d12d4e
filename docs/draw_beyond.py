"""Draws the pictures of docs/beyond.md: `python -m docs.draw_beyond`."""

from pathlib import Path

import splagger
from docs.beyond_tables import board
from splagger.plots.leaderboard import leaderboard_picture

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


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for env, methods in (("t-ls", ENCODERS), ("t-endless", ENDLESS)):
        splagger.plot(*(RESULTS / env / m for m in methods), path=IMAGES / f"{env}.svg")
    splagger.plot(RESULTS / "gym-MiniGrid-MemoryS7-v0", path=IMAGES / "minigrid.svg")
    (IMAGES / "leaderboard.svg").write_bytes(leaderboard_picture(board(), "svg"))


if __name__ == "__main__":
    main()
