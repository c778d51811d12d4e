"""One small experiment for all tests of training. It is compiled once and shared by all processes."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from splagger.agents import loading
from splagger.aggregators import Softmax, StraightThrough
from splagger.methods import Method
from splagger.policy import Gaussian
from splagger.runs.run import Run
from splagger.training import bench, program, runner

UPDATES, SHORT, BATCH = 12, 5, 80
SETTINGS = {
    "env.length": 5,
    "ppo.steps": 20,
    "ppo.envs": 4,
    "ppo.eval_interval": 1,
    "ppo.eval_tasks": 4,
    "network.width_factor": 0.0625,
    "network.state_embedding": 16,
    "network.hidden": "16,8",
    "network.latent_embedding": 4,
}
# A method that uses every axis of a sweep.
SWEPT = Method("swept", aggregator=StraightThrough(Softmax(0.3)), latent=Gaussian())


def tiny(**changes) -> Run:
    """Returns a run with four members and twelve updates."""
    given = {"env": "t-ls-small", "method": "splagger", "rates": (1e-3, 3e-4), "seeds": 2}
    return Run.create(**(given | {"frames": UPDATES * BATCH, "overrides": SETTINGS} | changes))


def arguments(frames=UPDATES * BATCH, rates=("1e-3", "3e-4")) -> list[str]:
    """Returns the command line options of the same run."""
    assignments = [f"{name}={value}" for name, value in SETTINGS.items()]
    return ["--rates", *rates, "--seeds", "2", "--frames", str(frames), "--set", *assignments]


# Shells ignore SIGINT in background jobs: this restores its handler.
HANDLE_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
MAIN = f"{HANDLE_SIGINT}; from splagger.__main__ import run; run()"


def start(
    *args: str, code: str = MAIN, process_group: int | None = None, **environment: str
) -> subprocess.Popen:
    """Starts the command line, or other `code`, in a new process."""
    command = [sys.executable, "-c", code, *args]
    pipe = subprocess.PIPE
    settings = os.environ | environment
    return subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, env=settings, process_group=process_group
    )


def finish(process: subprocess.Popen, timeout=300) -> tuple[int, str, str]:
    """Waits for the end of a process; returns (exit code, stdout, stderr)."""
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return process.returncode, out, err


def example():
    """Returns the shapes of the small run's training state."""
    return runner.compile_grid(tiny().config, tiny().points).example


def bits(tree) -> list[bytes]:
    """Returns type, shape and bytes of every leaf."""

    def plain(leaf):
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jr.key_data(leaf) if is_key else leaf)

    leaves = [plain(jnp.asarray(leaf)) for leaf in jax.tree.leaves(tree)]
    return [str((leaf.dtype, leaf.shape)).encode() + leaf.tobytes() for leaf in leaves]


def contents(folder) -> dict[str, bytes]:
    """Returns the content of every file below a folder, by its path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


_PROGRAMS: dict[tuple, program.Program] = {}


def _compile_once(config, points):
    """Returns the program of a grid from memory.

    It does not depend on the method's name, and its points are arguments. As in `Run.describe`, the number of
    updates matters only to schedules and buffers.
    """
    config = replace(config, method=replace(config.method, name="any"))
    if not (config.ppo.anneal or config.method.reconstruct):
        config = replace(config, updates=1)
    key = config, len(points), os.environ.get("XLA_FLAGS")
    if key not in _PROGRAMS:
        _PROGRAMS[key] = program.compile_grid(config, points)
    return _PROGRAMS[key].bind(points)


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    """Shares compiled programs: on disk with other processes, in memory between tests."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = os.environ.get("JAX_COMPILATION_CACHE_DIR") or str(shared / "jax")
    before = jax.config.jax_compilation_cache_dir
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", folder)
        for module in (runner, loading, bench):
            patch.setattr(module, "compile_grid", _compile_once)
        jax.config.update("jax_compilation_cache_dir", folder)
        compilation_cache.reset_cache()
        yield
    jax.config.update("jax_compilation_cache_dir", before)
    compilation_cache.reset_cache()


@pytest.fixture(scope="session")
def trained(compiled_once, tmp_path_factory) -> Path:
    """The folder of a finished run. Tests must not write to it."""
    out = tmp_path_factory.mktemp("trained")
    return runner.execute(tiny(), out, show=False)[0].path
