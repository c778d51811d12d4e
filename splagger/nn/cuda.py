"""CUDA sources of this package: compiled when they are first needed, kept on disk, called by XLA.

Where NVIDIA's compiler is missing, nothing here is available, and whoever asks does without.
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


@ft.cache
def register(source: Path, targets: Sequence[str], architecture: str) -> bool:
    """Whether XLA can call the functions `targets` of this source on this machine."""
    compiler = find_compiler()
    if compiler is None:
        return False
    try:
        library = ctypes.CDLL(str(_compiled(source, compiler, architecture)))
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or error
        warnings.warn(f"{source.name} cannot be used, slower kernels are: {reason}", stacklevel=2)
        return False
    for target in targets:
        capsule = jax.ffi.pycapsule(getattr(library, target))
        jax.ffi.register_ffi_target(target, capsule, platform="CUDA")
    return True


def find_compiler() -> str | None:
    """The path of nvcc: in $CUDA_HOME, on the path, or where CUDA is usually installed."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    usual = shutil.which("nvcc", path=str(Path(home) / "bin"))
    return usual if "CUDA_HOME" in os.environ and usual else shutil.which("nvcc") or usual


def _compiled(source: Path, compiler: str, architecture: str) -> Path:
    """The shared library of a source, from the cache if the same was compiled before."""
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
            made = Path(folder) / "library.so"
            command = [compiler, *options, "-o", str(made), str(source)]
            subprocess.run(command, check=True, capture_output=True, text=True)
            made.replace(target)  # at once: another process may compile the same
    return target
