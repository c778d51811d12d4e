"""NVIDIA's Multi-Process Service: kernels of several programs run on one GPU at the same time."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

CONTROL = "nvidia-cuda-mps-control"


def mps_is_running() -> bool:
    """Returns whether the service was started on this machine."""
    try:
        folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
        os.kill(int((folder / f"{CONTROL}.pid").read_text()), 0)
    except PermissionError:  # another user's process
        return True
    except (OSError, ValueError):
        return False
    return True


def start_mps() -> bool:
    """Starts the service on this machine; returns whether it was started by this call.

    Nothing happens where it is not installed, not allowed, or already running: programs then take turns on the GPU.
    """
    control = shutil.which(CONTROL)
    if control is None:
        return False
    # The service manages the GPUs that it sees: all of them, not only that of this process.
    environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [control, "-d"], env=environment, capture_output=True, timeout=20, check=False
        )
        return done.returncode == 0
    return False
