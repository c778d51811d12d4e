"""What a cluster costs per experiment: `python -m benchmarks.cluster --out benchmarks/results/cluster-cpu.json`.

Trains the same small experiments in this process and on a Ray cluster of one node with one core. Their program
is compiled before, so that what differs is a new process per experiment, its imports, and Ray.
Needs `pip install ".[cluster]"`.
"""

import argparse
import contextlib
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

from splagger.launchers import Launcher, on_ray
from splagger.launchers.local import Local
from splagger.launchers.on_ray import OnRay
from splagger.launchers.worker import Experiment, train_here
from splagger.runs.provenance import provenance
from tests.tiny import BATCH, tiny

EXPERIMENTS, UPDATES = 4, 100
RATES = [10.0**-k for k in range(2, 2 + EXPERIMENTS)]


def timed(experiment: Experiment) -> str:
    """Trains as a worker does, and writes the processor time of its whole process."""
    path = train_here(experiment)
    Path(path, "seconds").write_text(str(time.process_time()))
    return path


def durations(launcher: Launcher, out: Path) -> tuple[list[float], list[float]]:
    """Returns elapsed and processor seconds of each experiment; the latter are those of this process."""
    runs = [tiny(rates=(rate,), frames=UPDATES * BATCH) for rate in RATES]
    elapsed, processor = [], []
    started, used = time.perf_counter(), time.process_time()
    for _ in launcher.launch(runs, out, 120.0):
        now, spent = time.perf_counter(), time.process_time()
        elapsed.append(now - started)
        processor.append(spent - used)
        started, used = now, spent
    return elapsed, processor


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """A Ray cluster of one node with one core; yields its address."""
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80_000_000}
    found: Any = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield found.address
    finally:
        found.shutdown()


def measure(place: Path) -> dict[str, Any]:
    durations(Local(), place / "first")  # compiles the program, and writes it to the cache
    alone, alone_processor = durations(Local(), place / "local")
    with cluster() as address, mock.patch.object(on_ray, "train_here", timed):
        on_cluster, _ = durations(OnRay(address), place / "ray")
    seconds = [float(path.read_text()) for path in (place / "ray").glob("*/*/*/seconds")]
    return {
        "experiments": EXPERIMENTS,
        "updates": UPDATES,
        "local": {"elapsed": median(alone), "processor": median(alone_processor)},
        # The first experiment also waits for the connection.
        "ray": {"elapsed": median(on_cluster[1:]), "processor": median(seconds)},
        "load": os.getloadavg()[0] / (os.cpu_count() or 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="also write the result to this JSON file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = measure(Path(place))
    found["provenance"] = provenance(f"python -m benchmarks.cluster {shlex.join(sys.argv[1:])}")
    print(json.dumps(found, indent=2))
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
