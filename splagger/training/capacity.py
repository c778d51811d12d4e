"""Refuses runs that cannot fit into memory, before anything is compiled or written."""

import math
import os
from collections.abc import Sequence
from pathlib import Path

import jax

from splagger.errors import SettingError
from splagger.ppo.footprint import footprint
from splagger.ppo.settings import Config
from splagger.runs.run import Run

# On a CPU the estimate is right within a factor of two: a run is refused only if two thirds of it do not fit.
# A GPU needs less, because of half precision and fused kernels: for T-LS with 15 runs, 2.9 GB instead of 9.4.
TOLERANCE, GPU_TOLERANCE = 1.5, 4.0
SMALL = 0.05  # a rough estimate below this fraction of the memory needs no exact one
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_memory(run: Run, available: float | int | None = None) -> None:
    """Raises a SettingError that says what a run needs, what there is, and what would fit.

    - `available`: bytes of memory per device; by default those of this machine.
    """
    available = memory_per_device() if available is None else available
    members = math.ceil(run.size / (1 if jax.default_backend() == "cpu" else len(jax.devices())))
    if members * rough(run.config) < SMALL * available:
        return
    one = footprint(run.config)
    tolerance = TOLERANCE if jax.default_backend() == "cpu" else GPU_TOLERANCE
    if members * one > tolerance * available:
        fitting = int(available // one) * (run.size // members)
        advice = (
            f"{fitting:,} would fit: use fewer seeds or rates"
            if fitting
            else "reduce ppo.envs, ppo.steps, ppo.buffer, or the sizes of the method and the network"
        )
        runs = "1 run needs" if run.size == 1 else f"{run.size:,} runs need"
        raise SettingError(
            f"{run.row.name} · {run.method.name}: {runs} about {gigabytes(members * one)} of memory, and there are "
            f"{gigabytes(available)}; {advice}"
        )


def check_largest(runs: Sequence[Run]) -> None:
    """Checks the largest of several runs, before the first of them starts; each is checked again when it starts."""
    if runs:
        check_memory(max(runs, key=lambda run: run.size * rough(run.config)))


def memory_per_device() -> float | int:
    """Returns the bytes of memory of a device; on a CPU, those of the machine or the container."""
    stats = jax.devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"]
    limits = [Path(path).read_text().strip() for path in LIMITS if Path(path).is_file()]
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *(int(limit) for limit in limits if limit.isdigit())])


def rough(config: Config) -> float | int:
    """Returns generous bytes of one member by arithmetic alone, which takes no time."""
    ppo, network, env = config.ppo, config.network, config.env
    width, hidden = network.width(config.method), (network.state_embedding, *network.hidden)
    sizes = (env.horizon, env.obs_size, env.space.size, network.output_size, *network.embedding)
    step = 100 * (width + sum(hidden) + sum(sizes))
    generated = sum(math.prod(pair) for pair in zip(hidden, (*network.hidden, 10), strict=True))
    generated *= ppo.batch / ppo.minibatches + 10 * network.latent_embedding
    decoded = ppo.trajectories * ppo.beliefs * (ppo.decoded or env.horizon)
    buffer = ppo.buffer * env.horizon * env.obs_size * 3 + decoded * 10 * sum(
        network.decoder_hidden
    )
    evaluation = 100 * ppo.eval_tasks * (width + env.horizon)
    if config.method.reconstruct:
        evaluation += buffer
    return 4 * (ppo.batch * (step + ppo.epochs) + generated + 10 * width**2 + evaluation)


def gigabytes(size: float | int) -> str:
    """Returns a size as text.

    >>> gigabytes(2.34e9), gigabytes(1.5e13)
    ('2.3 GB', '15,000 GB')
    """
    return f"{size / 1e9:,.1f} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"
