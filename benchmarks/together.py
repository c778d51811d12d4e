"""Programs that share one GPU: `python -m benchmarks.together [env] [runs]`.

Writes benchmarks/results/together-<env>-<platform>.json: frames per second of each program while one, two or three of
them train at the same time. Where NVIDIA's Multi-Process Service can be started, it lets their kernels overlap.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context

from benchmarks.parts import RESULTS

ENV, RUNS, METHODS = "planning", 15, ("splagger", "rnn", "splagger-nornn")
SECONDS, LEAST = 10.0, 2  # how long programs train together, and for how many blocks at least


def train(env: str, method: str, runs: int, barrier, results) -> None:
    """Trains one program in this process: first with all others, then with one fewer at a time."""
    import numpy as np

    from splagger.runs.provenance import provenance
    from splagger.runs.run import Run
    from splagger.training.program import compile_grid

    run = Run.create(env, method, rates=[1e-3], seeds=runs)
    program = compile_grid(run.config, run.points)
    state, _ = program.block(program.init())  # compiles
    frames = run.config.ppo.batch * run.config.ppo.eval_interval * runs
    for programs in range(len(METHODS), METHODS.index(method), -1):
        barrier.wait()
        times, started = [], time.monotonic()
        while len(times) < LEAST or time.monotonic() - started < SECONDS:
            before = time.monotonic()
            state, _ = program.block(state)
            times.append(time.monotonic() - before)
        results.put((programs, method, frames / float(np.median(times)), len(times)))
        barrier.wait()
    for _ in range(METHODS.index(method)):  # the others continue without this program
        barrier.wait()
        barrier.wait()
    if method == METHODS[0]:
        results.put(provenance(f"python -m benchmarks.together {env} {runs}"))


@contextlib.contextmanager
def shared_gpu():
    """Starts NVIDIA's Multi-Process Service if possible; yields whether it runs."""
    control = shutil.which("nvidia-cuda-mps-control")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
            os.environ[name] = folder
        started = control is not None and subprocess.run([control, "-d"]).returncode == 0
        if not started:
            del os.environ["CUDA_MPS_PIPE_DIRECTORY"]
        try:
            yield started
        finally:
            if started and control is not None:
                subprocess.run([control], input="quit\n", text=True)


def measure(env: str, runs: int) -> dict:
    """Returns one row per number of programs, with the median speed of their blocks, evaluations included."""
    context = get_context("spawn")
    barrier, results = context.Barrier(len(METHODS)), context.Queue()
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = (
        "false"  # otherwise the first program takes most of the memory
    )
    with shared_gpu() as service:
        workers = [
            context.Process(target=train, args=(env, method, runs, barrier, results))
            for method in METHODS
        ]
        for worker in workers:
            worker.start()
        expected = 1 + sum(range(len(METHODS) + 1))
        found = [results.get(timeout=600) for _ in range(expected)]
        for worker in workers:
            worker.join()
    (about,) = [x for x in found if isinstance(x, dict)]
    measured = [x for x in found if isinstance(x, tuple)]
    rows = [_row(n, [m for m in measured if m[0] == n]) for n in range(len(METHODS), 0, -1)]
    return {"env": env, "runs": runs, "service": service, "rows": rows, "provenance": about}


def _row(programs: int, measured: list[tuple]) -> dict:
    speeds = {method: speed for _, method, speed, _ in measured}
    return {
        "programs": programs,
        "frames_per_second": speeds,
        "blocks": {method: blocks for _, method, _, blocks in measured},
        "together": sum(speeds.values()),
    }


if __name__ == "__main__":
    env, runs = sys.argv[1] if sys.argv[1:] else ENV, int(sys.argv[2]) if sys.argv[2:] else RUNS
    result = measure(env, runs)
    about = result["provenance"]
    name = "h200" if "H200" in about["device"] else about["platform"]
    target = RESULTS / f"together-{env}-{name}.json"
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(target)
