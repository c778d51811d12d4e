"""The package's CUDA sources, compiled on first use, cached on disk, and called by XLA.

Without NVIDIA's compiler, or on other devices, JAX and Triton do the same work: see `enabled`.
"""

import ctypes
import functools as ft
import hashlib
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import jax

from splagger.errors import SettingError
from splagger.files.cache import cache_folder
from splagger.nn.gpu.number_types import on_gpu

SWITCH, VALUES = "SPLAGGER_KERNELS", ("auto", "on", "off")
HEADER = Path(__file__).with_name("foreign.h")


def enabled() -> bool:
    """Returns whether kernels replace JAX's operations where the sizes allow it, as SPLAGGER_KERNELS says.

    - "auto", the default: on a Hopper GPU with NVIDIA's compiler. Other GPUs use a kernel for the GRU's steps only.
    - "off": never, not even for the GRU's steps.
    - "on": on every GPU. Kernels of `generated_layers` replace those that need a Hopper GPU or the compiler.

    CPUs never use kernels. The variable is read when a program is traced.
    """
    chosen = switch()
    if not on_gpu():
        return False
    return chosen == "on" or (chosen == "auto" and is_hopper() and find_compiler() is not None)


def switch() -> str:
    """Returns the value of SPLAGGER_KERNELS."""
    chosen = os.environ.get(SWITCH) or VALUES[0]
    if chosen not in VALUES:
        raise SettingError(f"{SWITCH} must be one of {', '.join(VALUES)}; got {chosen!r}")
    return chosen


def is_hopper() -> bool:
    """Returns whether the first local device is a Hopper GPU."""
    return getattr(jax.local_devices()[0], "compute_capability", "") == "9.0"


def available(source: Path, targets: Sequence[str]) -> bool:
    """Returns whether the device is a Hopper GPU, and the kernels `targets` of a source compile for it."""
    return on_gpu() and is_hopper() and register(source, targets, "90a")


@ft.cache
def register(source: Path, targets: Sequence[str], architecture: str) -> bool:
    """Compiles a source and registers its functions `targets` with XLA; returns whether this was possible.

    Without a compiler it returns False. If the compilation fails, it also warns.
    """
    compiler = find_compiler()
    if compiler is None:
        return False
    try:
        library = ctypes.CDLL(str(_compiled(source, compiler, architecture)))
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or error
        message = f"{source.name} cannot be used, so slower kernels replace it: {reason}"
        warnings.warn(message, stacklevel=2)
        return False
    for target in targets:
        capsule = jax.ffi.pycapsule(getattr(library, target))
        jax.ffi.register_ffi_target(target, capsule, platform="CUDA")
    return True


def find_compiler() -> str | None:
    """Returns the path of nvcc: from $CUDA_HOME, from $PATH, or from CUDA's default folder."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    usual = shutil.which("nvcc", path=str(Path(home) / "bin"))
    return usual if "CUDA_HOME" in os.environ and usual else shutil.which("nvcc") or usual


def _compiled(source: Path, compiler: str, architecture: str) -> Path:
    """Returns the shared library of a source, from the cache if it was compiled before."""
    options = [
        *("-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-I", jax.ffi.include_dir()),
        f"-gencode=arch=compute_{architecture},code=sm_{architecture}",
    ]
    sources = source.read_bytes() + HEADER.read_bytes()
    identity = sources + " ".join([compiler, jax.__version__, *options]).encode()
    name = f"{source.stem}-{hashlib.sha256(identity).hexdigest()[:16]}.so"
    target = cache_folder() / "cuda" / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            library = Path(folder) / "library.so"
            command = [compiler, *options, "-o", str(library), str(source)]
            subprocess.run(command, check=True, capture_output=True, text=True)
            library.replace(target)  # atomic, because another process may compile the same source
    return target
