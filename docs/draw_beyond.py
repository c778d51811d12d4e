"""Draws the pictures of docs/beyond.md: `python -m docs.draw_beyond`."""

from pathlib import Path

import splagger

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
ENDLESS = ("rnn", "mingru", "splagger", "splagger-mingru", "memoryless")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for env, methods in (("t-ls", ENCODERS), ("t-endless", ENDLESS)):
        splagger.plot(*(RESULTS / env / m for m in methods), path=IMAGES / f"{env}.svg")


if __name__ == "__main__":
    main()
