"""Tries bad command lines, damaged files, signals and bad environments: `python -m tests.storm`, or `make storm`.

Prints one table with the tries and failures of every part, then each failure with the command that repeats it.
"""

import argparse
import importlib
import json
import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path

from splagger.runs.provenance import provenance
from tests.storm.outcome import Outcome, table_of

# Module of tests.storm, and its tries in a storm of about 15 minutes on two cores.
PARTS = {
    "commands": 6000,
    "files": 1000,
    "environments": 4000,
    "kills": 100,
}


def run_part(name: str, tries: int, seed: int) -> Outcome:
    """Runs a part in this process; if it is killed or fails, that is one failure."""
    try:
        return importlib.import_module(f"tests.storm.{name}").storm(tries, seed)
    except Exception as error:
        repeat = f"python -m tests.storm.{name} --tries {tries} --seed {seed}"
        return Outcome(name, tries, [f"{type(error).__name__}: {error} ({repeat})"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="fraction of the usual tries")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--out", type=Path, help="also write the outcome to this JSON file")
    given = parser.parse_args()
    started, outcomes = time.monotonic(), []
    for name in given.parts:
        print(f"{name} …", file=sys.stderr, flush=True)
        outcomes.append(run_part(name, max(1, int(PARTS[name] * given.share)), given.seed))
    print(table_of(outcomes).text())
    print(f"  seed {given.seed}, {time.monotonic() - started:.0f} s")
    if given.out:
        found = {"parts": [asdict(outcome) for outcome in outcomes], "seed": given.seed}
        found["provenance"] = provenance(f"python -m tests.storm {shlex.join(sys.argv[1:])}")
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    for outcome in outcomes:
        for failure in outcome.failures:
            print(f"{outcome.name}: {failure}")
    return int(any(outcome.failures for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
