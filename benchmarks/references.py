"""Returns of the random and the scripted policies in the classic tasks: `python -m benchmarks.references [ENV …]`.

Writes benchmarks/results/references.json; environments that are not named keep their entries.
`splagger.paper_numbers` holds the results, which a test compares with that file.
"""

import json
import sys
from pathlib import Path

from benchmarks.scripted.references import POLICIES, estimate, label, scripted
from splagger.registry import ENVS

RESULT = Path(__file__).parent / "results" / "references.json"
META_EPISODES = 20_000
NAMES = [name for name, row in ENVS.items() if type(row.env) in POLICIES]


def measure(name: str) -> list[dict]:
    """Returns one entry per policy of an environment."""
    rows = []
    for policy in scripted(ENVS[name].env):
        mean, error = estimate(ENVS[name].meta, policy, META_EPISODES)
        row = {"env": name, "policy": label(policy), "mean": mean, "error": error}
        rows.append(row | {"meta_episodes": META_EPISODES})
        print(f"{name:14}{label(policy):34}{mean:9.3f} ± {error:.3f}", flush=True)
    return rows


def main(names: list[str]) -> None:
    """Estimates the returns in these environments, or in all."""
    for name in names or NAMES:
        measured = measure(name)
        kept = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
        rows = [row for row in kept if row["env"] != name] + measured
        rows.sort(key=lambda row: NAMES.index(row["env"]))
        RESULT.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
