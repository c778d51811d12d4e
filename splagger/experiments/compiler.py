"""What the compiler is told: where it keeps its programs, and which of its searches are worth their time."""

import contextlib
import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from splagger.nn import gru_cluster
from splagger.nn.precision import on_gpu
from splagger.policy import generated_hopper

# Of all the shapes that XLA tries for the blocks of each matmul on a Hopper GPU, these four are enough: with
# them, or with NVIDIA's library, matmuls of our sizes take 2% longer than with the best of all. They are in
# XLA's own text format.
TILES = Path(__file__).with_name("matmul_tiles.txtpb")


def set_up_compiler() -> None:
    """Compiled programs are kept on disk, unless JAX was told another place (or none, by an empty one).

    On a GPU random numbers come from a kernel that JAX has for it, the same numbers: written out, they are
    half of all operations of a training program.
    """
    chosen = getattr(jax.config, "jax_compilation_cache_dir", None)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ and not chosen:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        jax.config.update("jax_compilation_cache_dir", str(base / "splagger" / "jax"))
    if on_gpu() and hasattr(jax.config, "jax_threefry_gpu_kernel_lowering"):
        jax.config.update("jax_threefry_gpu_kernel_lowering", True)
    if on_gpu():  # our own kernels, all at once, unless they are compiled already
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda kernels: kernels.available(), (gru_cluster, generated_hopper)))


def compiler_options() -> dict[str, Any]:
    """On a CPU the time is spent in matmuls, which are not compiled: code around them need not be perfect, and a
    lower optimization level halves the wait for it; so does XLA's older way to write loops. On a Hopper GPU most of the wait is for trying
    variants of kernels: of matmuls a few are enough, of others XLA's first choice was never much slower.
    """
    if jax.default_backend() == "cpu":
        return {"xla_backend_optimization_level": 1} | _known(
            {"xla_cpu_use_fusion_emitters": False}
        )
    return _known(
        {
            "xla_gpu_gemm_autotuner_override_file": str(TILES),
            "xla_gpu_experimental_enable_fusion_autotuner": False,
        }
        if _is_hopper()
        and jax.__version_info__ >= (0, 11)  # before that, tiles have another format
        else {}
    )


def release_memory() -> None:
    """Gives freed memory back to the system, where the C library can (glibc)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _is_hopper() -> bool:
    return getattr(jax.local_devices()[0], "compute_capability", "") == "9.0"


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """These options, or none where this version of XLA does not have all of them: their names may change."""
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return options
