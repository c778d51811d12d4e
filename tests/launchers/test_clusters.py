"""Real schedulers: a worker that is asked to stop saves, another continues, and the curves have the same bytes.

Needs `pip install ".[cluster]"`; `python -m tests.cluster_storm` does worse to a larger cluster.
"""

import os
import signal
import threading
import time

import pytest

from splagger.files.lock import find_holder
from splagger.launchers.on_ray import OnRay
from splagger.launchers.on_slurm import OnSlurm
from splagger.runs.curves import curves_path
from splagger.runs.folder import OWNER, RunFolder
from splagger.training.runner import execute
from tests.tiny import BATCH, tiny

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),
]  # schedulers warn of their own


@pytest.fixture(scope="module")
def run():
    return tiny(frames=1000 * BATCH)


@pytest.fixture(scope="module")
def alone(run, compiled_once, tmp_path_factory):
    return execute(run, tmp_path_factory.mktemp("alone"), show=False)[0]


def signal_worker(folder: RunFolder, number: int) -> threading.Thread:
    """Sends a signal to the process that trains, once it has saved."""

    def work():
        while not folder.saved_updates():
            time.sleep(0.05)
        holder = find_holder(folder.path / OWNER)
        if holder and holder.process:
            os.kill(holder.process.pid, number)
            signaled.append(holder.process.pid)

    signaled: list[int] = []
    thread = threading.Thread(target=work, daemon=True)
    thread.signaled = signaled  # pyright: ignore[reportAttributeAccessIssue]
    thread.start()
    return thread


def check(launcher, run, alone, out, number):
    signals = signal_worker(RunFolder(run.folder(out)), number)
    (folder,) = launcher.launch([run], out, 0.5)
    signals.join(60)
    assert signals.signaled  # pyright: ignore[reportAttributeAccessIssue]
    assert folder.record().finished
    assert curves_path(folder.path).read_bytes() == curves_path(alone.path).read_bytes()
    assert [f.path for f in launcher.launch([run], out, 0.5)] == [folder.path]  # at once


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ray(run, alone, tmp_path, number, monkeypatch):
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        check(OnRay(cluster.address), run, alone, tmp_path, number)
    finally:
        cluster.shutdown()


def test_slurm_jobs_by_the_local_executor(run, alone, tmp_path):
    """submitit starts the job in a new process; SIGUSR2 announces the end of its time."""
    pytest.importorskip("submitit")
    check(OnSlurm(gpus=0, cluster="local"), run, alone, tmp_path, signal.SIGUSR2)
