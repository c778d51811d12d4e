"""GPU time of an update, kernel by kernel: `python -m benchmarks.profile`.

Writes benchmarks/results/profile-<env>-<platform>.json. XLA names the kernels. The number of launches shows
where a kernel belongs: one per step of rollout and evaluation, one per step of the memory's loops, or one per
minibatch.
"""

import collections
import json
import tempfile
import time
from pathlib import Path

import jax

from benchmarks.parts import RESULTS
from splagger.runs.provenance import provenance
from splagger.runs.run import Run
from splagger.training.program import compile_grid

ENV, METHOD, LONGEST = "t-ls", "splagger", 150


def profile() -> dict:
    """Returns the milliseconds of one block of the paper's grid, of its evaluation and of its longest kernels."""
    run = Run.create(ENV, METHOD)
    program = compile_grid(run.config, run.points)
    state, _ = program.block(program.init())  # compiles
    program.evaluate(state)
    started = time.monotonic()
    state, _ = program.block(state)
    middle = time.monotonic()
    program.evaluate(state)
    evaluated = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            program.block(state)
        kernels = _kernels(folder)
    return {
        "block_milliseconds": 1e3 * (middle - started),
        "evaluation_milliseconds": 1e3 * (evaluated - middle),
        "kernels": kernels[:LONGEST],
        "provenance": provenance("python -m benchmarks.profile"),
    }


def _kernels(folder: str) -> list[dict]:
    """Time and launches of every kernel on the GPU's streams, in order of decreasing time."""
    (path,) = Path(folder).rglob("*.xplane.pb")
    total, launches = collections.Counter(), collections.Counter()
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        streams = [line for line in plane.lines if "GPU" in plane.name and "Stream" in line.name]
        for event in (event for line in streams for event in line.events):
            total[event.name] += event.duration_ns / 1e6
            launches[event.name] += 1
    if not total:
        raise SystemExit("no kernels were recorded: this benchmark needs a GPU")
    row = lambda name: {"kernel": name, "milliseconds": total[name], "launches": launches[name]}  # noqa: E731
    return [row(name) for name, _ in total.most_common()]


if __name__ == "__main__":
    target = RESULTS / f"profile-{ENV}-{jax.default_backend()}.json"
    target.write_text(json.dumps(profile(), indent=1) + "\n")
    print(target)
