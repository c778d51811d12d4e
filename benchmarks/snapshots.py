"""How agents learn to learn: `python -m benchmarks.snapshots`, ten minutes on two cores.

Trains small agents on Dark Room with snapshots, and evaluates each snapshot of the best agent of each method on the
same new tasks. Writes benchmarks/results/snapshots.json, one entry per method and snapshot, with the return of each episode.
"""

import json
from pathlib import Path

import splagger
from splagger.runs.provenance import provenance

RESULT = Path(__file__).parent / "results" / "snapshots.json"
ENV, METHODS, TASKS = "dark-room", ("splagger", "rnn"), 1000
FRAMES, EVERY = 6e6, 7.5e5
SETTINGS = splagger.SMALL | {"ppo.eval_interval": 20}


def main(out: str = "runs") -> None:
    rows = []
    for method in METHODS:
        curves = splagger.train(
            ENV,
            method,
            rates=1e-3,
            seeds=2,
            frames=FRAMES,
            settings=SETTINGS,
            snapshot_every=EVERY,
            out=out,
        )
        folder = curves.attrs["folder"]
        for at in splagger.snapshots(folder):
            episodes, total = splagger.evaluate(splagger.load(folder, at=at), TASKS)
            row = {"method": method, "frames": at, "return": round(total.mean, 3)}
            rows.append(row | {"episodes": [round(score.mean, 3) for score in episodes]})
            print(rows[-1], flush=True)
    found = {"env": ENV, "tasks": TASKS, "rows": rows}
    found["provenance"] = provenance("python -m benchmarks.snapshots")
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    print(RESULT)


if __name__ == "__main__":
    main()
