"""What a SLURM job executes: an experiment that saves and is queued again when SLURM signals."""

import os
import signal
import sys
import time
from types import FrameType
from typing import Any

from splagger.errors import Interrupted, UserError
from splagger.launchers.worker import Experiment, train_here

# Seconds to wait after SIGTERM until SLURM ends the job. It decides whether to queue it again: it does so
# after a preemption, but not after `scancel`, and also not if the job ends by itself.
LINGER = 300.0


class SlurmJob:
    """A function for submitit that trains an experiment.

    submitit asks SLURM for SIGUSR2 before the time limit, and its handler calls `checkpoint` and queues the job again.
    Here, that handler is called once training has saved.
    """

    def __init__(self, experiment: Experiment):
        self.experiment = experiment
        self.requeue = False

    def __call__(self) -> tuple[str, UserError | None]:
        """Returns the path of the run folder, or an error that a user can fix."""
        queue_again: Any = signal.signal(signal.SIGUSR2, self._preempted)
        signal.signal(signal.SIGTERM, _stop)
        try:
            return train_here(self.experiment), None
        except UserError as error:
            return "", error
        except (Interrupted, KeyboardInterrupt):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # SLURM sends it several times
            if self.requeue:
                self.requeue = False
                _exiting(queue_again)
            time.sleep(LINGER)
            raise

    def checkpoint(self) -> Any:
        """Returns what is submitted when the job is queued again: the same, since the run folder has the state."""
        from submitit.helpers import DelayedSubmission  # pyright: ignore[reportMissingImports]

        return DelayedSubmission(self)

    def _preempted(self, number: int, frame: FrameType | None) -> None:
        self.requeue = True
        os.kill(os.getpid(), signal.SIGTERM)


def _stop(number: int, frame: FrameType | None) -> None:
    """Handles SIGTERM outside of training, which has a handler of its own."""
    raise Interrupted


def _exiting(queue_again: Any) -> None:
    """Queues the job again, and ends this process without waiting for running computations."""
    try:
        queue_again(signal.SIGUSR2, None)
    except SystemExit as error:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(error.code or 0) & 255)
