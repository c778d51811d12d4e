"""What the whole paper takes on 1, 8 and 64 GPUs: `python -m benchmarks.cluster_cost`.

Writes benchmarks/results/cluster-cost.json. Speeds come from the other files there, which were measured on one NVIDIA
H200; the schedule is simulated. Experiments start in the order of their length, the longest first, on the GPU with
the fewest programs. Fresh seeds start after all sweeps, as in `splagger reproduce`.

Robots are simulated on CPU cores, of which each GPU has `CORES`, as on the machine where they were measured. Of their
networks, only the size is known; they get the GPU's speed on T-LS. The time to start a process is not counted.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.parts import RESULTS
from splagger.paper.figures import select
from splagger.paper.reproduce import sweeps
from splagger.plots.panels import CurvePanel
from splagger.runs.run import Run
from splagger.stats.evidence import Evidence

GPUS, PROGRAMS = (1, 8, 64), (1, 2, 3)
FRESH = 10  # seeds, the default of `splagger reproduce`
CORES = 16  # per GPU
DIVIDED = 5  # GPUs that share an experiment with robots: one per learning rate
ROBOTS = {"cheetah-dir": "training", "walker": "walker_training"}  # keys of mujoco-h200.json
FILES = {"planning": "train-planning-h200", "mc-ls": "train-mc-ls-15-h200"}
DEFAULT = "train-t-ls-h200"
SIZES = {15: "train-t-ls-15-h200", 45: "train-t-ls-45-h200", 135: "train-t-ls-135-h200"}
OTHERS = "growth-runs-gpu", "train-t-ls-lstm-h200", "mujoco-h200", "together-planning-h200"


@dataclass
class Job:
    """An experiment: seconds of compilation, and of the GPU and the robots' simulations if it is alone."""

    name: str
    setup: float
    gpu: float
    simulation: float
    left: float = 1.0  # the fraction of its training that is left

    @property
    def length(self) -> float:
        return self.setup + self.gpu + self.simulation

    @property
    def is_robot(self) -> bool:
        return self.simulation > 0


def measured(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text())


def size_factor(runs: int) -> float:
    """Frames per second of a program with so many runs, relative to one with 15."""
    speed = {n: measured(f)["frames_per_second_with_evaluation"] for n, f in SIZES.items()}
    few = {row["runs"]: row["frames_per_second"] for row in measured("growth-runs-gpu")["rows"]}
    speed[1] = speed[15] * few[1] / few[15]
    sizes = sorted(speed)
    return float(np.interp(runs, sizes, [speed[n] for n in sizes])) / speed[15]


def jobs_of(run: Run, robot_gpus: int = 1) -> list[Job]:
    """Returns the cost of an experiment from the measured speeds.

    - `robot_gpus`: GPUs that share the members of an experiment with robots, as equal jobs.
    """
    name = run.row.name
    shares = robot_gpus if name in ROBOTS else 1
    members = run.size // shares
    frames = run.frames * members
    family = next((f for prefix, f in FILES.items() if name.startswith(prefix)), DEFAULT)
    found = measured(family)
    speed = found["frames_per_second_with_evaluation"] * size_factor(members)
    if "lstm" in run.method.encoder:
        slow, fast = measured("train-t-ls-lstm-h200"), measured(DEFAULT)
        key = "frames_per_second_with_evaluation"
        speed *= slow[key] / fast[key]
    simulation = 0.0
    if name in ROBOTS:
        simulation = frames / measured("mujoco-h200")["after"][ROBOTS[name]]["median"]
    costs = found["compile_seconds"], frames / speed, simulation
    return [Job(f"{name} {run.method.name}", *costs) for _ in range(shares)]


def paper() -> list[list[Run]]:
    """Returns the experiments of the paper in two stages: sweeps, then fresh seeds at the best rates."""
    figures = select("all")
    with tempfile.TemporaryDirectory() as nothing:
        plans = sweeps(figures, Evidence.read(nothing))
    panels = [p for figure in figures for p in figure.panels if isinstance(p, CurvePanel)]
    names = dict.fromkeys(e.series.name for p in panels for e in p.entries if not e.series.given)
    fresh = [Run.create(*name, rates=[1e-3], seeds=range(100, 100 + FRESH)) for name in names]
    return [[plan.run for plan in plans], fresh]


def makespan(jobs: Sequence[Job], gpus: int, programs: int, gain: dict[int, float]) -> float:
    """Returns the seconds until the last of `jobs` ends, with up to `programs` at a time on each of `gpus`.

    - `gain`: by number of programs, what they compute together relative to one alone.
    """
    waiting = sorted((Job(**vars(job)) for job in jobs), key=lambda job: job.length)
    active: list[list[Job]] = [[] for _ in range(gpus)]
    now = 0.0
    while waiting or any(active):
        while waiting and min(map(len, active)) < programs:
            min(active, key=len).append(waiting.pop())
        step = min(_remaining(job, on, gain) for on in active for job in on)
        now += step
        for on in active:
            rest = {id(job): _remaining(job, on, gain) for job in on}
            for job in on:
                _advance(job, on, gain, step)
            on[:] = [job for job in on if rest[id(job)] > step * (1 + 1e-9)]
    return now


def _seconds(job: Job, on: Sequence[Job], gain: dict[int, float]) -> float:
    """The seconds of a job's whole training beside the others on its GPU, which share kernels and cores."""
    n = len(on)
    return job.gpu * n / gain[n] + job.simulation * sum(other.is_robot for other in on)


def _remaining(job: Job, on: Sequence[Job], gain: dict[int, float]) -> float:
    return job.setup + job.left * _seconds(job, on, gain)


def _advance(job: Job, on: Sequence[Job], gain: dict[int, float], step: float) -> None:
    training = max(0.0, step - job.setup)
    job.setup = max(0.0, job.setup - step)
    job.left -= training / _seconds(job, on, gain)


def measure() -> dict[str, Any]:
    rows = {r["programs"]: r["together"] for r in measured("together-planning-h200")["rows"]}
    gain = {n: rows[n] / rows[1] for n in rows}
    stages = paper()

    def jobs(robot_gpus, robots=True):
        runs = [[run for run in stage if robots or run.row.name not in ROBOTS] for stage in stages]
        return [[job for run in stage for job in jobs_of(run, robot_gpus)] for stage in runs]

    parts = {"without robots": jobs(1, robots=False), "all": jobs(1), "divided": jobs(DIVIDED)}
    found = []
    for name, chosen in parts.items():
        for gpus in GPUS:
            for programs in PROGRAMS:
                seconds = sum(makespan(stage, gpus, programs, gain) for stage in chosen)
                found.append({"part": name, "gpus": gpus, "programs": programs, "seconds": seconds})
    longest = max((job for stage in parts["all"] for job in stage), key=lambda job: job.length)
    return {
        "jobs": {name: [len(stage) for stage in chosen] for name, chosen in parts.items()},
        "divided_by": DIVIDED,
        "rows": found,
        "gain": gain,
        "longest": {"name": longest.name, "seconds": longest.length},
        "cores_per_gpu": CORES,
        "sources": sorted({DEFAULT, *FILES.values(), *SIZES.values(), *OTHERS}),
        "command": "python -m benchmarks.cluster_cost",
    }


if __name__ == "__main__":
    result = measure()
    (RESULTS / "cluster-cost.json").write_text(json.dumps(result, indent=1) + "\n")
    for row in result["rows"]:
        print(
            f"{row['part']:15} {row['gpus']:3} GPUs, {row['programs']} each: {row['seconds'] / 3600:7.2f} h"
        )
