"""Provenance of results: command, commit, versions, device."""

import importlib.metadata
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import jax

from splagger.nn.gpu import cuda
from splagger.nn.gpu.number_types import on_gpu

PACKAGES = ("splagger", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")


def provenance(command: str) -> dict[str, Any]:
    """Returns the provenance of a result that `command` produces now on this machine, as plain data."""
    device = jax.devices()[0]
    return {
        "command": command,
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **_versions()},
        "device": f"{jax.device_count()} × {device.device_kind}",
        "platform": device.platform,
        **_kernels(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _kernels() -> dict[str, str]:
    """Whether the GPU kernels of `splagger.nn.gpu` were used; nothing on other devices."""
    return {"kernels": "on" if cuda.enabled() else "off"} if on_gpu() else {}


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _commit() -> str:
    """The commit of the source tree, with "+" if there are uncommitted changes.

    SPLAGGER_COMMIT overrides it, for copies of the tree without their git history.
    """
    if named := os.environ.get("SPLAGGER_COMMIT"):
        return named
    folder = str(Path(__file__).parent)

    def git(*args):
        command = ["git", "-C", folder, *args]
        result = subprocess.run(command, capture_output=True, text=True, timeout=10)
        return result.stdout.strip() if result.returncode == 0 else ""

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        changed = "+" if commit and git("status", "--porcelain", "-uno") else ""
    except (OSError, subprocess.TimeoutExpired):
        commit = changed = ""
    return commit + changed or "unknown"
