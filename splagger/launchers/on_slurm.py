"""Experiments on SLURM: one job per experiment, submitted by submitit.

A job that is preempted, or reaches its time limit, saves a checkpoint and is queued again. Jobs do not depend on the
launching process: if it stops, they continue, and the same command finds them.
"""

import contextlib
import getpass
import importlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splagger.errors import Interrupted, RunError, SettingError, one_line
from splagger.files.storage import write_atomically, writing
from splagger.launchers.local import stopped_by_signals
from splagger.launchers.protocol import check_names, finished
from splagger.launchers.slurm_job import SlurmJob
from splagger.launchers.worker import Experiment, is_finished
from splagger.runs.folder import RunFolder
from splagger.runs.run import Number, Run

JOBS = ".slurm"  # a folder in `out`: ids, scripts and logs of the jobs
HOURS = 24.0
SIGNAL_DELAY = 120  # seconds between the signal and the time limit
POLL = 5.0  # seconds between looks at the queue
MISSES = 3  # looks after which a job that is not in the queue has ended without a result


@dataclass(frozen=True)
class OnSlurm:
    """Trains on SLURM. `sbatch` reads further options from its environment, such as SBATCH_ACCOUNT.

    - `partition`: by default SLURM's.
    - `gpus`: GPUs per experiment, 1 by default.
    - `cpus`: CPU cores per experiment.
    - `hours`: the time limit of a job. An experiment that needs longer is queued again, as often as necessary.
    - `cluster`: submitit's name of the scheduler; "local" is for tests.
    """

    partition: str = ""
    gpus: Number | None = None
    cpus: int = 1
    hours: Number = HOURS
    cluster: str = "slurm"

    def __post_init__(self):
        if self.gpus is not None and self.gpus != int(self.gpus):
            raise SettingError(
                f"--gpus-per-run must be a whole number on SLURM, got {self.gpus:g}; Ray and --jobs share a GPU"
            )

    def launch(self, runs: Sequence[Run], out: Path, save_every: Number) -> Iterator[RunFolder]:
        """Trains all runs; yields their folders as they finish. A run that fails does not stop the others."""
        executor = self._executor(out.resolve() / JOBS)
        done = [run for run in runs if is_finished(run, out)]
        yield from (RunFolder(run.folder(out)) for run in done)
        runs = [run for run in runs if run not in done]
        check_names(runs)
        gpus = float(1 if self.gpus is None else self.gpus)
        queued = _queued if self.cluster == "slurm" else lambda: None
        with stopped_by_signals():
            experiments = [Experiment.create(run, out, save_every, gpus) for run in runs]
            jobs = [
                _submitted(executor, run, queued()) or self._submit(executor, run, experiment)
                for run, experiment in zip(runs, experiments, strict=True)
            ]
            try:
                yield from finished(_results(jobs, runs, out, queued))
            except KeyboardInterrupt:
                ids = " ".join(job.job_id for job in jobs)
                raise Interrupted(
                    "the jobs continue without this command, and the same command finds them again; "
                    f"to stop them: scancel {ids}"
                ) from None

    def _executor(self, folder: Path) -> Any:
        try:
            submitit: Any = importlib.import_module("submitit")
        except ImportError:
            raise SettingError(
                '--on slurm needs submitit, which is not installed; pip install "splagger[cluster]"'
            ) from None
        if self.cluster == "slurm" and not (shutil.which("sbatch") and shutil.which("srun")):
            raise SettingError(
                "--on slurm needs the commands sbatch and srun, which this machine does not have; run it on a "
                "login node of the cluster"
            )
        with writing(folder, "choose another --out"):
            folder.mkdir(parents=True, exist_ok=True)
        # The number of time limits that a job may reach has no limit.
        return submitit.AutoExecutor(folder, self.cluster, slurm_max_num_timeout=10**6)

    def _submit(self, executor: Any, run: Run, experiment: Experiment) -> Any:
        executor.update_parameters(
            name=f"splagger-{run.digest}",
            timeout_min=max(1, round(60 * self.hours)),
            cpus_per_task=self.cpus,
            gpus_per_node=int(experiment.gpus),
            slurm_signal_delay_s=SIGNAL_DELAY,
            slurm_additional_parameters={"requeue": True},
            **({"slurm_partition": self.partition} if self.partition else {}),
        )
        try:
            job = executor.submit(SlurmJob(experiment))
        except RuntimeError as error:  # submitit's errors, with the output of sbatch
            raise RunError(f"SLURM refuses the job: {one_line(error)}") from None
        write_atomically(Path(executor.folder) / f"{run.digest}.id", job.job_id)
        print(f"{run.row.name} · {run.method.name}: job {job.job_id}", flush=True)
        return job


def _submitted(executor: Any, run: Run, queued: set[str] | None) -> Any:
    """Returns the job in the queue that trains a run, if there is one."""
    path = Path(executor.folder) / f"{run.digest}.id"
    if not queued or not path.is_file() or path.read_text() not in queued:
        return None
    job = importlib.import_module("submitit").SlurmJob(executor.folder, path.read_text())
    job.paths.result_pickle.unlink(missing_ok=True)  # from before it was queued again
    return job


def _queued() -> set[str] | None:
    """Returns the ids of all waiting and running jobs of this user; None if SLURM does not answer.

    submitit asks `sacct`, which works only on clusters with accounting.
    """
    command = ["squeue", "--noheader", "--format=%A", f"--user={getpass.getuser()}"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return set(done.stdout.split())
    return None


def _results(
    jobs: Sequence[Any], runs: Sequence[Run], out: Path, queued: Callable[[], set[str] | None]
) -> Iterator[Callable[[], RunFolder]]:
    """Yields a function per job, as the jobs end, that returns its folder or raises its error."""
    pending = {job.job_id: (job, run) for job, run in zip(jobs, runs, strict=True)}
    missed = dict.fromkeys(pending, 0)
    while pending:
        alive = queued()
        for key, (job, run) in list(pending.items()):
            missed[key] += alive is not None and key not in alive
            if job.paths.result_pickle.exists() or missed[key] > MISSES:
                del pending[key]
                yield lambda job=job, run=run: _result(job, run, out)
        if pending:
            time.sleep(POLL)


def _result(job: Any, run: Run, out: Path) -> RunFolder:
    """Returns the folder of a job that has ended. A UserError in the job is raised here."""
    ended = job.paths.result_pickle.exists()
    if ended:
        _, error = job.result()  # a bug in the job is raised here, with its traceback
        if error is not None:
            raise error
    if not is_finished(run, out):
        # A job that was in the queue already may have been submitted for fewer frames.
        what = "trained fewer frames than asked for" if ended else "ended without a result"
        raise RunError(
            f"job {job.job_id} {what}; see {job.paths.stderr}; the same command continues from the last checkpoint"
        )
    return RunFolder(run.folder(out))
