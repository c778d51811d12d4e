"""The package's CUDA sources, compiled on first use, cached on disk, and called by XLA.

They are optional: see `enabled`. Without NVIDIA's compiler, or on other devices, JAX and Triton do the same work.
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

SWITCH, ON = "SPLAGGER_KERNELS", "hopper"


def enabled() -> bool:
    """Returns whether the environment variable SPLAGGER_KERNELS is set to "hopper".

    It switches on the CUDA kernels (`gru_hopper`, `generated_layers_hopper`) and the Triton kernels of
    `generated_layers`. They apply where the device and the sizes allow it, and never on a CPU. They are off by
    default, because their effect on numerical errors over a whole training is not fully measured
    (docs/performance.md). The variable is read when a program is traced.
    """
    return os.environ.get(SWITCH) == ON


def is_hopper() -> bool:
    """Returns whether the first local device is a Hopper GPU."""
    return getattr(jax.local_devices()[0], "compute_capability", "") == "9.0"


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
    identity = source.read_bytes() + " ".join([compiler, jax.__version__, *options]).encode()
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    name = f"{source.stem}-{hashlib.sha256(identity).hexdigest()[:16]}.so"
    target = base / "splagger" / "cuda" / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            library = Path(folder) / "library.so"
            command = [compiler, *options, "-o", str(library), str(source)]
            subprocess.run(command, check=True, capture_output=True, text=True)
            library.replace(target)  # atomic, because another process may compile the same source
    return target
