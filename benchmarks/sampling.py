"""Most likely actions against sampled ones on MC-LS: `python -m benchmarks.sampling`, half an hour on two cores.

Trains four small SplAgger-noRNN agents at a constant rate and evaluates each of them every 384,000 frames, once with the
most likely actions, as all evaluations in training do, and once with sampled ones, as its rollouts do.
Writes benchmarks/results/sampling.json, one entry per agent and evaluation, with the return of each episode.
"""

import json
from pathlib import Path

import splagger
from splagger.agents.player import Player
from splagger.runs.provenance import provenance
from splagger.training.compiler import set_up_compiler

RESULT = Path(__file__).parent / "results" / "sampling.json"
METHOD, RATES, SEEDS = "splagger-nornn", (3e-4, 1e-3), (0, 1)
SETTINGS = splagger.SMALL | {"ppo.anneal": False}
INTERVAL, EVALUATIONS, TASKS = 384_000, 10, 200


def measure(player: Player, frames: int) -> dict:
    """Returns the entry of one agent after `frames` frames of training."""
    row = {"frames": frames, "rate": player.point.rate, "seed": player.point.seed}
    for name, explore in (("most_likely", False), ("sampled", True)):
        episodes, _ = splagger.evaluate(player, TASKS, explore=explore)
        row[name] = [round(episode.mean, 3) for episode in episodes]
    print(row, flush=True)
    return row


def main(out: str = "runs/sampling") -> None:
    set_up_compiler()
    rows = []
    for frames in range(INTERVAL, (EVALUATIONS + 1) * INTERVAL, INTERVAL):
        curves = splagger.train("mc-ls", METHOD, RATES, SEEDS, frames, out, SETTINGS, show=False)
        players = (splagger.load(curves.attrs["folder"], r, s) for r in RATES for s in SEEDS)
        rows += [measure(player, frames) for player in players]
        result = {
            "tasks": TASKS,
            "rows": rows,
            "provenance": provenance("python -m benchmarks.sampling"),
        }
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(RESULT)


if __name__ == "__main__":
    main()
