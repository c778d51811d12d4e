"""How long planned experiments take: from a recorded run of the same kind, or from the benchmarks of known devices."""

from collections.abc import Sequence

from splagger.paper.reproduce import Plan
from splagger.stats.evidence import Evidence
from splagger.stats.recorded import RecordedRun

# Device → environment → frames per second of full-size SplAgger, with evaluations. The numbers are those of
# benchmarks/results, which a test compares: 15 runs in one program on the GPU, one run on two CPU cores.
REFERENCE = "NVIDIA H200"
BENCHMARKS: dict[str, dict[str, float]] = {
    REFERENCE: {"t-ls": 1_389_916.0, "planning": 1_597_538.0, "mc-ls": 1_323_734.0},
    "cpu": {"t-ls": 1_565.0},
}
SIMILAR = {"t-agreement": "t-ls", "t-latent": "t-ls", "planning-noobs": "planning"}


def seconds_of(plan: Plan, device: str, evidence: Evidence) -> float | None:
    """Returns the estimated seconds of an experiment on a device; None if nothing is known about its speed.

    The newest recorded run of the same environment and method on that device comes first, then the benchmarks.
    """
    name = plan.run.row.name, plan.run.method.name
    runs = [run for run in evidence.runs if run.name == name and _ran_on(run, device)]
    newest = max(runs, key=lambda run: run.record.started, default=None)
    speed = newest.record.frames_per_second if newest else _benchmark(name[0], device)
    return plan.frames / speed if speed else None


def total_of(seconds: Sequence[float | None]) -> tuple[float, int]:
    """Returns the sum of all known durations, and the number of the unknown ones."""
    known = [s for s in seconds if s is not None]
    return sum(known, 0.0), len(seconds) - len(known)


def _ran_on(run: RecordedRun, device: str) -> bool:
    """Whether the run names its speed on one such device. On GPUs, runs that do not mention kernels are too old."""
    record, about = run.record, run.record.provenance
    current = about.get("platform") != "gpu" or "kernels" in about
    alone = about.get("device") == f"1 × {device}" and not record.overrides
    return alone and current and bool(record.frames_per_second)


def _benchmark(env: str, device: str) -> float | None:
    """Returns the speed on a known device. The speed on T-LS relates devices where an environment was not measured."""
    env, speeds = SIMILAR.get(env, env), BENCHMARKS.get(device, {})
    if env in speeds or env not in BENCHMARKS[REFERENCE] or "t-ls" not in speeds:
        return speeds.get(env)
    return BENCHMARKS[REFERENCE][env] * speeds["t-ls"] / BENCHMARKS[REFERENCE]["t-ls"]
