"""Speed of encoders with and without a loop over time: `python -m benchmarks.encoders`.

Trains T-LS with 15 and 45 runs, and one run at sequence lengths 400, 2,000 and 10,000: rollouts of that many steps in
a maze whose task is as long. All programs compile at the same time, each in its own process. Then they are timed one
after another, each alone on the device. Writes benchmarks/results/encoders-<platform>.json.
"""

import json
import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection

from benchmarks.parts import RESULTS
from splagger.training.bench import measure

METHODS = ("rnn", "splagger", "mingru", "splagger-mingru", "splagger-lru", "splagger-mlstm")
LONG = ("splagger", "splagger-mingru", "splagger-lru")
LENGTHS = (400, 2_000, 10_000)
EPISODES = 4  # per task of T-LS


def rows() -> list[dict]:
    """Returns the arguments of all measurements."""
    many = [{"method": m, "runs": n, "settings": {}} for n in (15, 45) for m in METHODS]
    long = [
        {"method": m, "runs": 1, "settings": {"ppo.steps": n, "env.length": n // EPISODES}}
        for n in LENGTHS
        for m in LONG
    ]
    return many + long


def work(pipe: Connection, row: dict) -> None:
    """Compiles, reports that, and measures when the answer arrives."""

    def wait():
        pipe.send("compiled")
        pipe.recv()

    try:
        result = measure("t-ls", row["method"], row["runs"], 3, row["settings"], wait)
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"[:500]}
    pipe.send(row | result)


def main(names: list[str]) -> None:
    context, started = get_context("spawn"), []
    for row in rows():
        if names and row["method"] not in names:
            continue
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, row), daemon=True)
        process.start()
        started.append((ours, process))
    first = [pipe.recv() for pipe, _ in started]
    results = []  # written after each measurement, so that an interruption loses none
    for message, (pipe, process) in zip(first, started, strict=True):
        if message == "compiled":
            pipe.send("go")
            message = pipe.recv()
        process.join(10)
        results.append(message)
        print({k: v for k, v in message.items() if k != "provenance"}, flush=True)
        platform = next((r["provenance"]["platform"] for r in results if "provenance" in r), "none")
        (RESULTS / f"encoders-{platform}.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
