"""One experiment on a machine of a cluster: what a Ray task and a SLURM job execute."""

import contextlib
import math
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from splagger.errors import RunError
from splagger.files.lock import find_holder
from splagger.launchers.mps import start_mps
from splagger.runs.folder import OWNER, RunFolder
from splagger.runs.run import Number, Run
from splagger.training.runner import execute

# Seconds after which a worker says that it waits for another process, which trains the same run.
_PATIENCE = 5.0


class Experiment(NamedTuple):
    """A run as plain data, and where it is trained.

    - `arguments`: of `Run.create`.
    - `out`: the folder for run folders, as an absolute path that all machines share.
    - `save_every`: seconds between checkpoints.
    - `directory`: the working directory of the launching process, for modules of the user.
    - `gpus`: the number of GPUs that the experiment was given; less than 1 is a share of one.
    """

    arguments: Mapping[str, Any]
    out: str
    save_every: Number
    directory: str
    gpus: Number = 0.0

    @classmethod
    def create(cls, run: Run, out: Path, save_every: Number, gpus: Number) -> "Experiment":
        return cls(run.arguments(), str(out.resolve()), save_every, os.getcwd(), gpus)


def train_here(experiment: Experiment) -> str:
    """Trains an experiment from its last checkpoint to its end; returns the path of its folder.

    Raises `Interrupted` if the experiment can continue elsewhere.
    """
    with contextlib.suppress(OSError):  # needed only for modules of the user
        os.chdir(experiment.directory)
    if experiment.gpus:
        _prepare_gpu(experiment.gpus)
    run = Run.create(**experiment.arguments)
    folder = RunFolder(run.folder(experiment.out))
    while True:
        _wait_until_free(folder)
        try:
            execute(run, experiment.out, save_every=experiment.save_every, show="lines")
            return str(folder.path)
        except RunError:
            if find_holder(folder.path / OWNER) is None:
                raise
            # Another worker was faster, or this process was paused and another one continued the run.


def _wait_until_free(folder: RunFolder) -> None:
    """Waits as long as another process trains in the folder.

    A worker that was asked to stop saves within ten seconds, and the lock of a machine that vanished is taken over
    after one minute. A worker that its cluster has lost may train to the end; then nothing is left to do.
    """
    if not folder.path.is_dir():
        return
    try:
        with folder.locked(_PATIENCE):
            return
    except RunError as error:
        print(f"waiting: {error}", flush=True)
    with folder.locked(math.inf):
        pass


def is_finished(run: Run, out: str | Path) -> bool:
    """Whether there is nothing left to train."""
    folder = RunFolder(run.folder(out))
    with contextlib.suppress(RunError):  # the worker reports a damaged record
        if folder.exists:
            record = folder.record()
            return record.finished and record.update >= run.config.updates
    return False


def _prepare_gpu(gpus: Number) -> None:
    """Lets programs share a GPU if asked; raises a RunError if there is none."""
    if gpus < 1:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        start_mps()
    import jax

    if jax.default_backend() == "cpu":
        raise RunError(
            f"JAX finds no GPU on {socket.gethostname()}; install splagger[cuda] there, or train without GPUs by "
            "--gpus-per-run 0"
        )
