"""Speed of encoders with and without a loop over time: `python -m benchmarks.encoders`.

Trains T-LS with 15 and 45 runs, and one run at sequence lengths 400, 2,000 and 10,000: rollouts of that many steps in
a maze whose task is as long. Each program has its own process. Those with 45 runs or one run compile at the same time,
and are then timed one after another, each alone on the device. After them, those with 15 runs compile alone, too.
Writes benchmarks/results/encoders-<platform>.json.
"""

import json
import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from benchmarks.parts import RESULTS
from splagger.training.bench import measure

METHODS = ("splagger", "splagger-mingru", "splagger-lru", "splagger-mlstm")
LENGTHS = (400, 2_000, 10_000)
EPISODES = 4  # per task of T-LS


def groups(methods: tuple[str, ...]) -> list[list[dict]]:
    """Returns the arguments of all measurements. The programs of a group compile at the same time."""
    long = [{"ppo.steps": n, "env.length": n // EPISODES} for n in LENGTHS]
    together = [(45, {}), *((1, settings) for settings in long)]
    first = [{"method": m, "runs": n, "settings": s} for n, s in together for m in methods]
    return [first, *([{"method": m, "runs": 15, "settings": {}}] for m in methods)]


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


def start(row: dict) -> tuple[Connection, BaseProcess]:
    """Starts `work` in a process of its own."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, row), daemon=True)
    process.start()
    return ours, process


def main(methods: tuple[str, ...]) -> None:
    results = []  # written after each measurement, so that an interruption loses none
    for group in groups(methods):
        started = [start(row) for row in group]
        first = [pipe.recv() for pipe, _ in started]
        for message, (pipe, process) in zip(first, started, strict=True):
            if message == "compiled":
                pipe.send("go")
                message = pipe.recv()
            process.join(10)
            results.append(message | {"compiled_alone": len(group) == 1})
            print({k: v for k, v in results[-1].items() if k != "provenance"}, flush=True)
            found = (r["provenance"]["platform"] for r in results if "provenance" in r)
            path = RESULTS / f"encoders-{next(found, 'none')}.json"
            path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or METHODS)
