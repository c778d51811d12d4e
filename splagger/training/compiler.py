"""Settings of JAX and XLA: those of other threads, the cache of compiled programs, and a shorter compilation."""

import contextlib
import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from splagger.files.cache import cache_folder
from splagger.nn.gpu import cuda, generated_layers_hopper, gru_hopper, split_max
from splagger.nn.gpu.number_types import on_gpu

T = TypeVar("T")
# XLA tries many block shapes for each matmul on a Hopper GPU. These two are enough: most of the work is done by our own
# kernels, and large matmuls by NVIDIA's library. The file has XLA's text format.
TILES = Path(__file__).with_name("matmul_tiles.txtpb")


# Settings of JAX with a context manager of the same name, which is in effect in the thread that enters it only.
CONTEXTS = (
    "enable_x64",
    "default_matmul_precision",
    "default_device",
    "default_prng_impl",
    "threefry_partitionable",
    "numpy_rank_promotion",
    "numpy_dtype_promotion",
    "debug_nans",
    "debug_infs",
    "log_compiles",
)


def in_other_threads(function: Callable[..., T]) -> Callable[..., T]:
    """Returns a function that runs in any thread under the settings of JAX that this thread has now."""
    settings = {name: getattr(jax.config, f"jax_{name}") for name in CONTEXTS}

    def inside(*args: Any) -> T:
        with contextlib.ExitStack() as stack:
            for name, value in settings.items():
                if getattr(jax.config, f"jax_{name}") != value:
                    stack.enter_context(getattr(jax, name)(value))
            return function(*args)

    return inside


def set_up_compiler() -> None:
    """Caches compiled programs on disk, unless JAX is configured otherwise (an empty folder disables its cache).

    On a GPU, it selects JAX's own kernel for random numbers. The numbers are the same; inlined, they are half of
    all operations of a training program. It also compiles our CUDA kernels, if they are
    `cuda.enabled`.
    """
    chosen = getattr(jax.config, "jax_compilation_cache_dir", None)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ and not chosen:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
    if on_gpu() and hasattr(jax.config, "jax_threefry_gpu_kernel_lowering"):
        jax.config.update("jax_threefry_gpu_kernel_lowering", True)
    if cuda.enabled():
        with ThreadPoolExecutor() as pool:
            sources = gru_hopper, generated_layers_hopper, split_max
            list(pool.map(lambda kernels: kernels.available(), sources))


def compiler_options() -> dict[str, Any]:
    """Returns options that shorten the compilation on this device, except those that `XLA_FLAGS` sets.

    On a CPU, most of the time is spent in matmuls, which are not compiled. A lower optimization level of the other
    code halves the compilation time, and so does XLA's older loop emitter. On a Hopper GPU, most of the compilation
    time is autotuning. A few variants of matmuls are enough; for other kernels, XLA's first choice was never much
    slower.
    """
    if jax.default_backend() == "cpu":
        level = _not_chosen({"xla_backend_optimization_level": 1})
        return level | _known(_not_chosen({"xla_cpu_use_fusion_emitters": False}))
    return _known(
        _not_chosen(
            {
                "xla_gpu_gemm_autotuner_override_file": str(TILES),
                "xla_gpu_experimental_enable_fusion_autotuner": False,
            }
        )
        if cuda.is_hopper()
        and jax.__version_info__ >= (0, 11)  # older versions have another format for tiles
        else {}
    )


def release_memory() -> None:
    """Returns freed memory to the operating system, if the C library supports it (glibc)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _not_chosen(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that the user did not choose in `XLA_FLAGS`."""
    flags = {flag.partition("=")[0] for flag in os.environ.get("XLA_FLAGS", "").split()}
    return {name: value for name, value in options.items() if f"--{name}" not in flags}


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Returns these options, or none if this XLA version does not have all of them: their names may change."""
    if not options:
        return {}
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return options
