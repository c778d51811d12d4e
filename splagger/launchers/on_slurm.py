"""Experiments on SLURM: one job per experiment, submitted by submitit.

A job that is preempted, or reaches its time limit, saves a checkpoint and is queued again. Jobs do not depend on the
launching process: if it stops, they continue, and the same command finds them.
"""

import contextlib
import importlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splagger.errors import Interrupted, RunError, SettingError, one_line
from splagger.files.storage import write_atomically, writing
from splagger.launchers.local import stopped_by_signals
from splagger.launchers.protocol import all_finished
from splagger.launchers.slurm_job import SlurmJob
from splagger.launchers.worker import Experiment, is_finished
from splagger.runs.folder import RunFolder
from splagger.runs.run import Number, Run

JOBS = ".slurm"  # a folder in `out`: ids, scripts and logs of the jobs
HOURS = 24.0
SIGNAL_DELAY = 120  # seconds between the signal and the time limit
POLL = 5.0  # seconds


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
        gpus = float(1 if self.gpus is None else self.gpus)
        with stopped_by_signals():
            experiments = [Experiment.create(run, out, save_every, gpus) for run in runs]
            jobs = [
                _submitted(executor, run.digest) or self._submit(executor, run, experiment)
                for run, experiment in zip(runs, experiments, strict=True)
            ]
            try:
                yield from all_finished(_results(jobs))
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


def _submitted(executor: Any, digest: str) -> Any:
    """Returns the job that already trains a run, if there is one."""
    path = Path(executor.folder) / f"{digest}.id"
    if not path.is_file():
        return None
    job = executor.job_class(executor.folder, path.read_text())
    return None if _ended(job) else job


def _ended(job: Any) -> bool:
    return job.paths.result_pickle.exists() or job.done(force_check=True)


def _results(jobs: Sequence[Any]) -> Iterator[Callable[[], RunFolder]]:
    """Yields a function per job, as the jobs end, that returns its folder or raises its error."""
    pending = list(jobs)
    while pending:
        for job in [job for job in pending if _ended(job)]:
            pending.remove(job)
            yield lambda job=job: _result(job)
        if pending:
            time.sleep(POLL)


def _result(job: Any) -> RunFolder:
    """Returns the folder of a job that has ended. A UserError in the job is raised here."""
    try:
        path, error = job.result()
    except Exception as failure:  # submitit's, which contains the traceback of the job as text
        with contextlib.suppress(OSError):
            log = job.paths.stderr
        raise RunError(
            f"job {job.job_id} ended as {job.state} ({one_line(failure)}); its log is {log}; the same command "
            "continues from the last checkpoint"
        ) from failure
    if error is not None:
        raise error
    return RunFolder(path)
