"""Measures training speed on this machine."""

import resource
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from splagger.errors import SettingError
from splagger.runs.provenance import provenance
from splagger.runs.run import Run
from splagger.training.capacity import check_memory
from splagger.training.program import compile_grid


def measure(
    env: str,
    method: str,
    runs: int = 1,
    blocks: int = 3,
    settings: Mapping[str, Any] | None = None,
    wait: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Times blocks of updates; returns speed, compile time, peak memory and provenance.

    Speed is the frames per second of all runs together in the median block, with and without its evaluation.

    - `runs`: number of agents that train in one program.
    - `blocks`: number of blocks to time, after one to warm up.
    - `settings`: overrides such as {"ppo.envs": 64}.
    - `wait`: is called between compilation and the first block, so that a program can wait until it is alone.
    """
    if runs < 1 or blocks < 1:
        raise SettingError(f"runs and blocks must be positive, got {runs} and {blocks}")
    run = Run.create(env, method, rates=[1e-3], seeds=runs, overrides=settings)
    check_memory(run)
    program = compile_grid(run.config, run.points)
    compile_seconds = program.compile("evaluate", "updates")
    wait()
    state, _ = program.block(program.init())  # warm-up
    program.evaluate(state)
    times, evaluations = [], []
    for _ in range(blocks):
        started = time.monotonic()
        state, _ = program.block(state)
        middle = time.monotonic()
        program.evaluate(state)
        times.append(middle - started)
        evaluations.append(time.monotonic() - middle)
    block, evaluation = float(np.median(times)), float(np.median(evaluations))
    if evaluation >= block:
        raise SettingError(
            "the evaluation takes as long as everything else, so the speed of the updates cannot be measured; set fewer "
            "ppo.eval_tasks or a larger ppo.eval_interval"
        )
    frames = run.config.ppo.batch * run.config.ppo.eval_interval * runs
    return {
        "frames_per_second": frames / (block - evaluation),
        "frames_per_second_with_evaluation": frames / block,
        "seconds_per_update": (block - evaluation) / run.config.ppo.eval_interval,
        "compile_seconds": compile_seconds,
        "peak_host_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "peak_device_memory_gb": _device_memory(),
        "runs": runs,
        "provenance": provenance(_command(env, method, runs, blocks, settings or {})),
    }


def _command(env: str, method: str, runs: int, blocks: int, settings: Mapping[str, Any]) -> str:
    changes = [f"{name}={value}" for name, value in settings.items()]
    words = f"splagger bench {env} {method} --runs {runs} --blocks {blocks}"
    return " ".join([words, "--set", *changes]) if changes else words


def _device_memory() -> float | None:
    stats = jax.devices()[0].memory_stats() or {}
    peak = stats.get("peak_bytes_in_use")
    return peak / 1e9 if peak else None
