"""Cost of digests in checkpoints: `python -m benchmarks.saving`.

Writes benchmarks/results/saving-<platform>.json: seconds for a checkpoint of full-size SplAgger on T-LS with 15 runs,

  saving             as in training
  without_digests    the same file, with constants instead of digests
  restoring          reading the file and verifying its digests
  without_verifying  reading it alone

All are timed in turns, and the fastest turn of each counts: other load on the machine can only slow a turn down.
"""

import contextlib
import json
import tempfile
import time
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp

from splagger.files import array_file
from splagger.runs.checkpoints import restore_checkpoint, save_checkpoint
from splagger.runs.folder import RunFolder
from splagger.runs.provenance import provenance
from splagger.runs.run import Run
from splagger.training.program import compile_grid

RESULTS = Path(__file__).parent / "results"
RUNS, TURNS = 15, 7


def seconds(function) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def without_digests():
    return mock.patch.object(array_file, "_sha256", return_value=bytes(32))


def measure() -> dict[str, float]:
    """Returns the fastest seconds of each, and the size of the file in bytes."""
    run = Run.create("t-ls", "splagger", rates=(1e-3,), seeds=RUNS)
    example = compile_grid(run.config, run.points).example
    state = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), example)
    state = jax.block_until_ready(state)
    with tempfile.TemporaryDirectory() as place:
        folders = {name: RunFolder(Path(place) / name) for name in ("with", "without")}

        def save(name):
            return lambda: save_checkpoint(folders[name], 1, state)

        def restore(name):
            return lambda: restore_checkpoint(folders[name], example)

        both = contextlib.nullcontext, without_digests
        times: dict[str, list[float]] = {}
        for _ in range(TURNS):
            for name, patched in zip(folders, both, strict=True):
                with patched():
                    times.setdefault(f"saving {name}", []).append(seconds(save(name)))
                    times.setdefault(f"restoring {name}", []).append(seconds(restore(name)))
        (path,) = folders["with"].path.glob("checkpoints/*")
        size = path.stat().st_size
    best = {name: min(values) for name, values in times.items()}
    return {
        "saving": best["saving with"],
        "without_digests": best["saving without"],
        "restoring": best["restoring with"],
        "without_verifying": best["restoring without"],
        "bytes": size,
    }


def main() -> None:
    found = measure() | {"provenance": provenance("python -m benchmarks.saving")}
    platform = found["provenance"]["platform"]
    (RESULTS / f"saving-{platform}.json").write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
