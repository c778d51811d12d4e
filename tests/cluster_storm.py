"""A sweep on a Ray cluster of one machine, of which everything is killed again and again.

python -m tests.cluster_storm --events 30 --seed 0 --out benchmarks/results/cluster-storm.json

Eight small experiments are trained without interruption. Then the same sweep runs while nodes are removed, workers and
the launching command are killed, and the head of the cluster is restarted. Nothing may be lost, and every curves.csv
must have the same bytes. Needs `pip install ".[cluster]"`.
"""

import argparse
import collections
import contextlib
import itertools as it
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splagger.errors import Interrupted
from splagger.files.lock import find_holder
from splagger.launchers import train_all
from splagger.runs.curves import curves_path
from splagger.runs.folder import OWNER, find_runs
from splagger.runs.provenance import provenance
from tests.tiny import BATCH, SETTINGS, tiny

NODES = 3
METHODS, RATES = ("splagger", "rnn"), (3e-3, 1e-3, 3e-4, 1e-4)  # two programs are compiled
UPDATES = 1500
MEMORY = 80_000_000  # bytes of each node's object store, which is hardly used
# The events of a storm in proportion. Those that take long are rare.
COMMON = ("worker killed", "worker asked to stop", "node killed", "node removed")
RARE = (
    "command killed",
    "command asked to stop",
    "head restarted",
    "nodes lost while workers are paused",
)
EVENTS = (*COMMON, *RARE, *(5 * COMMON), *RARE[:2])
# Settings of Ray: workers are as fast as other processes, and it notices within seconds that its head is gone.
RAY = {
    "RAY_worker_niceness": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
}


class Storm:
    """A cluster, the command that trains on it, and everything that happens to them."""

    def __init__(self, out: Path, rng: random.Random):
        self.out, self.rng = out, rng
        self.log = open(out.with_suffix(".log"), "ab")  # noqa: SIM115
        self.start_cluster()
        self.launch()

    def start_cluster(self) -> None:
        from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": MEMORY}
        self.cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.add_node() for _ in range(NODES)]

    def add_node(self) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=MEMORY, wait=False)

    def launch(self) -> None:
        """Starts the command; the same one, however often."""
        command = training(self.out, f"ray:{self.cluster.address}")
        self.command = subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def workers(self) -> list[int]:
        """Returns the processes that train, by the locks of their run folders."""
        holders = [find_holder(path) for path in self.out.glob(f"*/*/*/{OWNER}")]
        return [h.process.pid for h in holders if h and h.process and not h.is_dead]

    def kill_worker(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(self.rng.choice(self.workers()), number)

    def remove_node(self, graceful: bool, node: Any = None) -> None:
        node = node or self.rng.choice(self.nodes)
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=graceful)
        time.sleep(self.rng.uniform(0.0, 3.0))
        self.nodes.append(self.add_node())

    def lose_node(self) -> None:
        """The worker is paused, its node vanishes, and the worker wakes up after its run was taken over."""
        pids = self.workers()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for node in list(self.nodes):
            self.remove_node(graceful=False, node=node)
        time.sleep(75.0)  # longer than a lock lives without heartbeats
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def stop_command(self, number: int) -> None:
        self.command.send_signal(number)
        self.command.wait(60)
        self.launch()

    def restart_head(self) -> None:
        """The head vanishes. The command ends by itself; the nodes and their workers are stopped late."""
        before = self.cluster
        before.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
        self.command.wait(120)
        self.start_cluster()
        self.launch()
        time.sleep(self.rng.uniform(0.0, 10.0))
        before.shutdown()

    def events(self) -> dict[str, Callable[[], object]]:
        return {
            "worker killed": lambda: self.kill_worker(signal.SIGKILL),
            "worker asked to stop": lambda: self.kill_worker(signal.SIGTERM),
            "node killed": lambda: self.remove_node(graceful=False),
            "node removed": lambda: self.remove_node(graceful=True),
            "command killed": lambda: self.stop_command(signal.SIGKILL),
            "command asked to stop": lambda: self.stop_command(signal.SIGTERM),
            "head restarted": self.restart_head,
            "nodes lost while workers are paused": self.lose_node,
        }

    def wait_for_worker(self, since: float) -> bool:
        """Waits for a worker, and often until one has saved after `since`; returns False if the command ended."""
        wanted = since if self.rng.random() < 0.6 else 0.0
        while self.command.poll() is None:
            with contextlib.suppress(FileNotFoundError):  # old checkpoints are removed
                saved = [p.stat().st_mtime for p in self.out.glob("*/*/*/checkpoints/*")]
                if max(saved, default=0.0) > wanted and self.workers():
                    return True
            time.sleep(0.1)
        return False

    def close(self) -> None:
        self.command.kill()
        self.command.wait()
        self.cluster.shutdown()
        self.log.close()


def training(out: Path, on: str) -> list[str]:
    """Returns the command that trains the eight experiments."""
    return [sys.executable, "-m", "tests.cluster_storm", "--keep", str(out), "--train", on]


def train(out: Path, on: str) -> int:
    settings = SETTINGS | {"ppo.eval_interval": 5}
    grid = {"frames": UPDATES * BATCH, "overrides": settings}
    runs = [tiny(method=m, rates=(rate,), **grid) for m in METHODS for rate in RATES]
    try:
        train_all(runs, out, save_every=2.0, on=on)
    except Interrupted as error:
        print(error)
        return 130
    return 0


def content(out: Path) -> dict[str, bytes]:
    """Returns the curves of all finished runs, by their folder."""
    finished = [folder for folder in find_runs(out) if folder.record().finished]
    return {str(f.path.relative_to(out)): curves_path(f.path).read_bytes() for f in finished}


def one_round(out: Path, plan: list[str], rng: random.Random) -> int:
    """Trains the sweep under the planned events, as long as it trains; returns the command's exit code."""
    storm, since = Storm(out, rng), 0.0
    try:
        while plan and storm.wait_for_worker(since):
            time.sleep(rng.uniform(0.0, 2.0))
            print(f"{time.strftime('%X')} {plan[-1]}, {len(content(out))} finished", flush=True)
            storm.events()[plan.pop()]()
            since = time.time()
        return storm.command.wait(1800)
    finally:
        storm.close()


def storm(events: int, seed: int, place: Path) -> dict[str, Any]:
    """Sends events to as many rounds of the sweep as necessary."""
    started, rng = time.monotonic(), random.Random(seed)
    subprocess.run(training(place / "alone", "local"), check=True, stdout=subprocess.DEVNULL)
    wanted, failures, rounds = content(place / "alone"), [], 0
    print(
        f"{len(wanted)} runs without interruption: {time.monotonic() - started:.0f} s", flush=True
    )
    plan = list(it.islice(it.cycle(EVENTS), events))
    counts = collections.Counter(plan)
    rng.shuffle(plan)
    while plan:
        out = place / f"round-{rounds}"
        code, rounds = one_round(out, plan, rng), rounds + 1
        ended = content(out)
        failures += [f"round {rounds}: the command ended with {code}"] * (code != 0)
        failures += [f"round {rounds}: {name} is lost" for name in wanted.keys() - ended.keys()]
        failures += [
            f"round {rounds}: {name} has other bytes"
            for name in ended
            if ended[name] != wanted[name]
        ]
    return {
        "experiments": len(wanted),
        "nodes": NODES,
        "rounds": rounds,
        "events": dict(counts),
        "identical": rounds * len(wanted) - len(failures),
        "failures": failures,
        "seconds": round(time.monotonic() - started),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="also write the outcome to this JSON file")
    parser.add_argument("--keep", type=Path, help="folder for runs and logs, which is not removed")
    parser.add_argument("--train", help="only train the experiments, on this launcher")
    given = parser.parse_args()
    if given.train:
        return train(given.keep, given.train)
    os.environ.update(RAY)
    with tempfile.TemporaryDirectory() as place:
        found = storm(given.events, given.seed, given.keep or Path(place))
    found["provenance"] = provenance(f"python -m tests.cluster_storm {shlex.join(sys.argv[1:])}")
    print(json.dumps(found, indent=2))
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    return int(bool(found["failures"]))


if __name__ == "__main__":
    sys.exit(main())
