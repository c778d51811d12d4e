"""Where a result comes from: command, commit, versions, device."""

import importlib.metadata
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("splagger", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")


def provenance(command: str) -> dict[str, Any]:
    """Returns everything that says how a number was made, as plain data."""
    device = jax.devices()[0]
    return {
        "command": command,
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **_versions()},
        "device": f"{jax.device_count()} × {device.device_kind}",
        "platform": device.platform,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _commit() -> str:
    """The commit of the source tree; "+" means uncommitted changes.

    Where the tree was copied without its history, set SPLAGGER_COMMIT.
    """
    if named := os.environ.get("SPLAGGER_COMMIT"):
        return named
    where = Path(__file__).parent

    def git(*args):
        done = subprocess.run(
            ["git", "-C", str(where), *args], capture_output=True, text=True, timeout=10
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        changed = "+" if commit and git("status", "--porcelain", "-uno") else ""
    except (OSError, subprocess.TimeoutExpired):
        commit = changed = ""
    return commit + changed or "unknown"
