"""Speed of trained agents that act outside training: `python -m benchmarks.player`.

Writes benchmarks/results/player-cpu.json: for SplAgger on T-LS at full size, with random weights in all arrays,

  step_seconds    act and observe of one transition, by the NumPy player and by the JAX player, for observations
                  that are all new, and for as few different ones as T-LS has
  start_seconds   processor time from the start of Python to the first action: imports, reading, compilation

Everything runs on one core. The median and the fastest time of a step are reported, because other load on the machine
can only slow a step down: it also evicts the 10 MB of the hypernetwork's actor from the cache. Starts are the fastest of several, after one that fills the file cache.
"""

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import splagger
from splagger.agent import build
from splagger.portable import load
from splagger.runs.provenance import provenance
from splagger.runs.run import Run

RESULTS = Path(__file__).parent / "results"
STEPS, STARTS = 2_000, 5
OBSERVATIONS = {"new": 1_000_000, "repeated": 12}  # T-LS has 12 different observations
START = {
    "numpy": "from splagger.portable import load",
    "jax": "from splagger import load",
}


def write_agent(path: Path) -> None:
    """Writes a full-size agent in which no array is zero, as after training."""
    run = Run.create("t-ls", "splagger", rates=(1e-3,), seeds=1)
    agent = build(jr.key(0), run.method, run.config.interface, run.row.network)
    random = np.random.default_rng(0)
    noise = lambda x: x + 0.01 * jnp.asarray(random.normal(size=x.shape), jnp.float32)  # noqa: E731
    agent = jax.tree.map(noise, agent)
    about = {"run": run, "path": path}
    player = splagger.Player(agent, agent.normalizers(), run.row.meta, run.points[0], **about)
    splagger.save_agent(player, path)


def step_seconds(player, different: int) -> dict[str, float]:
    """Returns the median and the fastest time of one act and observe, with so many different observations."""
    random = np.random.default_rng(0)
    obs = random.normal(size=(different, 5)).astype(np.float32)
    obs = obs[random.integers(different, size=STEPS + 1)]
    times = []
    for before, after in itertools.pairwise(obs):
        started = time.perf_counter()
        player.observe(player.act(before), 0.5, after)
        jax.block_until_ready(player.memory)
        times.append(time.perf_counter() - started)
    return {"median": float(np.median(times)), "fastest": min(times)}


def start_seconds(code: str, path: Path) -> float:
    """Returns the least processor time of a process that ends after its first action."""
    code = f"{code}; load({str(path)!r}).act([0.0] * 5)"
    times = []
    for _ in range(1 + STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times[1:])


def on_one_core() -> None:
    """Starts this program again with one thread on one core, unless that has happened."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.player"], environment)


def main() -> None:
    on_one_core()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.npz"
        write_agent(path)
        players = {"numpy": load(path), "jax": splagger.load(path)}
        for player in players.values():  # compiles
            player.observe(player.act([0.0] * 5), 0.0, [0.0] * 5)
        result = {
            "step_seconds": {
                name: {kind: step_seconds(player, count) for kind, count in OBSERVATIONS.items()}
                for name, player in players.items()
            },
            "start_seconds": {name: start_seconds(code, path) for name, code in START.items()},
            "provenance": provenance("python -m benchmarks.player"),
        }
    target = RESULTS / "player-cpu.json"
    target.write_text(json.dumps(result, indent=2) + "\n")
    print(target.read_text())


if __name__ == "__main__":
    main()
