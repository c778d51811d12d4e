"""A worker waits for the previous worker of its run, and needs the GPU that it was given."""

import os
import shutil
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from splagger.errors import Interrupted, RunError
from splagger.launchers import mps, on_slurm, slurm_job, worker
from splagger.launchers.slurm_job import SlurmJob
from splagger.launchers.worker import Experiment, is_finished, train_here
from splagger.runs.curves import curves_path
from splagger.runs.folder import RunFolder
from tests.tiny import BATCH, UPDATES, tiny


@pytest.fixture
def finished(trained, tmp_path):
    """A copy of a finished run, in the folder that its experiment writes to."""
    folder = tiny().folder(tmp_path)
    shutil.copytree(trained, folder)
    return RunFolder(folder)


def test_what_is_finished(finished, tmp_path):
    assert is_finished(tiny(), tmp_path)
    assert not is_finished(tiny(frames=2 * UPDATES * BATCH), tmp_path)  # the same folder, longer
    assert not is_finished(tiny(rates=(1e-3,)), tmp_path)
    (finished.path / "run.json").write_text("damaged")
    shutil.rmtree(finished.path / "checkpoints")
    assert not is_finished(tiny(), tmp_path)


def test_a_worker_trains_as_this_process_does(trained, tmp_path):
    experiment = Experiment.create(tiny(), tmp_path, 60.0, 0.0)
    path = train_here(experiment)
    assert curves_path(Path(path)).read_bytes() == curves_path(trained).read_bytes()


def test_a_worker_waits_for_the_previous_worker(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "_PATIENCE", 0.0)
    held, said, printed = threading.Event(), threading.Event(), []
    monkeypatch.setattr(worker, "print", lambda *a, **_: (printed.append(*a), said.set()), False)

    def previous():
        with RunFolder(finished.path).locked():
            held.set()
            said.wait(30)

    thread = threading.Thread(target=previous)
    thread.start()
    held.wait(30)
    assert train_here(Experiment.create(tiny(), tmp_path, 60.0, 0.0)) == str(finished.path)
    assert len(printed) == 1 and "another process is training in" in printed[0]
    thread.join()


def test_a_worker_that_loses_its_run_waits_for_the_other(finished, tmp_path, monkeypatch):
    calls = []

    def execute(*_, **__):
        calls.append(0)
        if len(calls) == 1:
            raise RunError("this process has lost its lock")

    holders = [object()]
    monkeypatch.setattr(worker, "execute", execute)
    monkeypatch.setattr(worker, "find_holder", lambda path: holders.pop() if holders else None)
    train_here(Experiment.create(tiny(), tmp_path, 60.0, 0.0))
    assert len(calls) == 2
    calls.clear()
    with pytest.raises(RunError, match="lost its lock"):  # nobody else trains this run
        train_here(Experiment.create(tiny(), tmp_path, 60.0, 0.0))


def test_a_worker_without_its_gpu_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "start_mps", lambda: True)
    with pytest.raises(RunError, match="JAX finds no GPU on"):
        train_here(Experiment.create(tiny(), tmp_path, 60.0, 0.5))


@pytest.mark.parametrize("code", [0, 1])
def test_the_multi_process_service_is_started_for_all_gpus(tmp_path, monkeypatch, code):
    control = tmp_path / mps.CONTROL
    control.write_text(
        f'#!/bin/sh\necho "$1 [$CUDA_VISIBLE_DEVICES]" > {tmp_path}/said\nexit {code}\n'
    )
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert mps.start_mps() == (code == 0)  # it fails if it already runs
    assert (tmp_path / "said").read_text() == "-d []\n"
    monkeypatch.setenv("PATH", "")
    assert not mps.start_mps()


class Signals:
    """Restores the handlers of signals, and stands for submitit's handler."""

    def __init__(self):
        self.calls = []

    def __call__(self, number, frame):
        self.calls.append(number)
        raise SystemExit(-1)


@pytest.fixture
def submitit_handler():
    handler, numbers = Signals(), (signal.SIGUSR2, signal.SIGTERM)
    before = [signal.signal(number, handler) for number in numbers]
    yield handler
    for number, old in zip(numbers, before, strict=True):
        signal.signal(number, old)


@pytest.mark.parametrize(
    "sent, requeued, lingered",
    [
        ([signal.SIGUSR2], 1, 0),  # the time limit
        ([signal.SIGTERM], 0, 1),  # scancel, or a preemption: SLURM decides
        ([signal.SIGUSR2, signal.SIGTERM], 1, 0),
    ],
)
def test_slurm_jobs_are_queued_again_after_they_have_saved(
    submitit_handler, monkeypatch, sent, requeued, lingered
):
    events = []

    def train(experiment):
        try:
            for number in sent:
                os.kill(os.getpid(), number)
                time.sleep(0.01)
        finally:
            events.append("saved")

    def leave(code):
        events.append(f"exit {code}")
        raise Interrupted

    monkeypatch.setattr(slurm_job, "train_here", train)
    monkeypatch.setattr(slurm_job.os, "_exit", leave)
    monkeypatch.setattr(slurm_job.time, "sleep", lambda seconds: events.append(seconds))
    with pytest.raises(Interrupted):
        SlurmJob(Experiment.create(tiny(), Path("runs"), 60.0, 0.0))()
    wanted = ["saved"] + ["exit 255"] * requeued + [slurm_job.LINGER] * lingered
    assert [event for event in events if event != 0.01] == wanted
    assert submitit_handler.calls == [signal.SIGUSR2] * requeued
    os.kill(os.getpid(), signal.SIGTERM)  # SLURM sends it again


def test_a_slurm_job_for_fewer_frames_does_not_count_as_finished(finished, tmp_path):
    """The job of an earlier command, which is still in the queue, may have been submitted for fewer frames."""

    class Ended:
        job_id = "77"
        paths = SimpleNamespace(result_pickle=tmp_path, stderr="77_err")
        result = staticmethod(lambda: ("folder", None))

    assert on_slurm._result(Ended(), tiny(), tmp_path).path == finished.path
    with pytest.raises(RunError, match="job 77 trained fewer frames than asked for"):
        on_slurm._result(Ended(), tiny(frames=2 * UPDATES * BATCH), tmp_path)


def test_slurm_jobs_return_errors_of_users(submitit_handler, monkeypatch):
    error = RunError("the disk is full")

    def train(experiment):
        raise error

    monkeypatch.setattr(slurm_job, "train_here", train)
    experiment = Experiment.create(tiny(), Path("runs"), 60.0, 0.0)
    assert SlurmJob(experiment)() == ("", error)
