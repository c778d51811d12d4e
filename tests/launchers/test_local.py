"""Experiments that are trained side by side give the same results as alone; plans list what figures lack."""

import os
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from splagger import methods
from splagger.aggregators import Mean
from splagger.envs.mujoco.simulations import THREADS
from splagger.errors import DivergedError, Interrupted, RunError, SettingError
from splagger.launchers import local, on_ray, on_slurm, sweep, train_all
from splagger.launchers.protocol import has_a_name
from splagger.methods import Method
from splagger.paper.figures import select
from splagger.paper.reproduce import fresh_seeds, sweeps
from splagger.plots.panels import CurvePanel, Entry, Figure
from splagger.plots.styles import style_of
from splagger.runs.curves import curves_path
from splagger.runs.folder import RunFolder
from splagger.runs.run import Run
from splagger.stats.evidence import Evidence, Series
from tests.synthetic import learning, write_run
from tests.tiny import BATCH, UPDATES, arguments, finish, start, tiny

FIGURE = select("memory/t-ls")
METHODS = ("splagger", "rnn", "amrl", "cnp", "pearl")


# A killed run that continues in new processes shows the same law in tests/training/test_resume.py, and the failure
# below happens in processes side by side.
@pytest.mark.slow
def test_two_runs_at_a_time_give_the_same_results_as_alone(trained, tmp_path, capfd):
    """Separate processes compute the same bits as this one, and each prints its progress."""
    runs = [tiny(), tiny(rates=(3e-4, 1e-3))]
    folders = train_all(runs, tmp_path, jobs=2)
    assert [folder.path.name for folder in folders] == [run.digest for run in runs]
    assert curves_path(folders[0].path).read_bytes() == curves_path(trained).read_bytes()
    assert all(folder.record().finished for folder in folders)
    assert capfd.readouterr().out.count(f"update {UPDATES}/{UPDATES}") == 2


def test_a_failure_is_raised_and_no_other_run_starts(tmp_path):
    runs = [tiny(seeds=seeds) for seeds in (1, 2, 3)]
    for bad in runs:
        bad.folder(tmp_path).parent.mkdir(parents=True, exist_ok=True)
        bad.folder(tmp_path).write_text("not a folder")
    with pytest.raises(RunError, match="cannot write to"):
        train_all(runs, tmp_path, jobs=2)
    with pytest.raises(SettingError, match="jobs must be at least 1, got 0"):
        train_all([tiny()], tmp_path, jobs=0)


def until_two_train(out):
    """Waits until two runs have done updates; their events exist before they are compiled, but are nearly empty."""
    training, started = set(), time.monotonic()
    while len(training) < 2 and time.monotonic() - started < 200:
        time.sleep(0.2)
        events = out.glob("*/*/*/tensorboard/*/*")
        training = {path.parents[2] for path in events if path.stat().st_size > 2000}
    assert len(training) == 2
    return list(map(RunFolder, training))


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="ctrl-c", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, id="sigterm", marks=pytest.mark.slow),
    ],
)
def test_an_interruption_saves_all_runs(tmp_path, number):
    """Sends SIGINT to the whole process group, as a terminal does, and SIGTERM to the command only."""
    long = arguments(frames=4000 * BATCH)
    command = ["sweep", "--envs", "t-ls-small", "--methods", "splagger", "rnn", "--jobs", "2"]
    process = start(*command, "--out", str(tmp_path), *long, process_group=0)
    training = until_two_train(tmp_path)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.terminate()
    code, _, err = finish(process)
    assert (
        code == 130
        and "stopped; the same command continues each run from its last checkpoint" in err
    )
    assert all(one.saved_updates() and not one.record().finished for one in training)


@pytest.mark.slow
def test_the_runs_of_a_killed_command_are_saved_and_unlocked(tmp_path):
    """No process can handle SIGKILL, so the children must notice it. They inherit the pipes and close them last."""
    long = arguments(frames=4000 * BATCH)
    command = ["sweep", "--envs", "t-ls-small", "--methods", "splagger", "rnn", "--jobs", "2"]
    process = start(*command, "--out", str(tmp_path), *long)
    training = until_two_train(tmp_path)
    process.kill()
    finish(process, timeout=60)
    for folder in training:
        with folder.locked():
            assert folder.saved_updates() and not folder.record().finished


def test_a_run_whose_members_all_diverge_does_not_stop_the_others(tmp_path, monkeypatch):
    executed = []

    def execute(run, *_, **__):
        executed.append(run)
        if run.rates[0] >= 1:
            raise DivergedError("every member diverged")
        return RunFolder(tmp_path / run.digest), True

    monkeypatch.setattr(local, "execute", execute)
    runs = [tiny(rates=(rate,)) for rate in (1.0, 1e-3, 2.0, 1e-4)]
    with pytest.raises(DivergedError, match=r"every member diverged \| every member diverged"):
        train_all(runs, tmp_path)
    assert executed == runs
    assert len(train_all(runs[1::2], tmp_path)) == 2


def test_sweeps_train_what_a_figure_lacks(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(2.0))
    plans = sweeps(FIGURE, Evidence.read(tmp_path))
    assert {plan.run.method.name for plan in plans} == set(METHODS) - {"rnn"}
    assert {(plan.run.row.name, len(plan.run.points)) for plan in plans} == {("t-ls", 15)}
    costs = [plan.frames for plan in sweeps(select("all"), Evidence.read(tmp_path))]
    assert costs == sorted(costs)


def test_fresh_seeds_use_the_rate_that_the_sweep_chose(tmp_path):
    faster = lambda rate, seed: learning(10.0 if rate == 3e-4 else 5.0)(rate, seed)  # noqa: E731
    write_run(tmp_path, "t-ls", "splagger", faster, rates=(1e-3, 3e-4))
    write_run(tmp_path, "t-ls", "rnn", faster, rates=(1e-3, 3e-4))
    seeds = range(100, 103)
    write_run(tmp_path, "t-ls", "rnn", faster, rates=(3e-4,), seeds=seeds, name="fresh")
    (plan,) = fresh_seeds(FIGURE, Evidence.read(tmp_path), 10)
    assert (plan.run.method.name, plan.run.rates) == ("splagger", (3e-4,))
    assert plan.run.seeds == tuple(range(100, 110))
    assert fresh_seeds(FIGURE, Evidence.read(tmp_path), 0) == []


def test_experiments_that_compare_settings_need_no_fresh_seeds(tmp_path):
    write_run(tmp_path, "t-ls", "pearl", learning(2.0), rates=(1e-3, 3e-4), kl_weights=(1.0,))
    series = Series.create("t-ls", "pearl", kl_weight=1.0)
    panel = CurvePanel("kl", "KL", (Entry(series, style_of("pearl")),))
    figure = Figure("tuning", "Tuning", "Figure 8", (panel,))
    assert fresh_seeds([figure], Evidence.read(tmp_path), 10) == []


def test_jobs_share_the_cores(monkeypatch):
    monkeypatch.delenv(THREADS, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    assert [local.threads_each(jobs) for jobs in (2, 6, 100)] == [12, 4, 1]
    monkeypatch.setenv(THREADS, "5")
    assert local.threads_each(6) == 5


@pytest.fixture
def mps(monkeypatch, tmp_path):
    """A machine on which NVIDIA's Multi-Process Service seems to run, with 16 cores."""
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "")  # restored afterwards
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE")
    monkeypatch.delenv(THREADS, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    pid = tmp_path / "nvidia-cuda-mps-control.pid"
    pid.write_text(f"{os.getpid()}\n")
    return pid


def test_programs_share_a_gpu_by_default_where_that_pays(mps):
    walkers = [Run.create("walker-small", name) for name in METHODS]
    assert local.jobs_that_pay([tiny(), tiny(seeds=5)]) == 3
    assert local.jobs_that_pay(walkers) == 6
    assert local.jobs_that_pay([*walkers, tiny()]) == 3
    own = Run.create(
        "t-ls-small", Method("own", encoder="gru", skip=1.0)
    )  # no other process knows it
    assert local.jobs_that_pay([tiny(), own]) == 1
    mps.write_text("999999999")  # the service has ended
    assert local.jobs_that_pay(walkers) == 1
    mps.unlink()
    assert local.jobs_that_pay(walkers) == 1


def test_what_exists_in_this_process_only_is_not_trained_by_others(tmp_path, monkeypatch):
    """Another process would look the name up, and find nothing or the registered method."""
    registered = methods.METHODS["splagger"]
    changed = Run.create("t-ls-small", replace(registered, width=64))
    assert has_a_name(changed)  # by its name and a setting
    assert not has_a_name(Run.create("t-ls-small", replace(registered, aggregator=Mean())))
    own = Run.create("t-ls-small", replace(registered, name="mine"))
    with pytest.raises(SettingError, match="mine on t-ls-small exists in this process only"):
        train_all([own, tiny()], tmp_path, jobs=2)
    monkeypatch.setattr(on_ray, "_import_ray", object)
    for launcher in (on_ray.OnRay(), on_slurm.OnSlurm()):
        monkeypatch.setattr(type(launcher), "_executor", lambda *_: None, raising=False)
        with pytest.raises(SettingError, match="exists in this process only"):
            train_all([own], tmp_path, on=launcher)


def test_a_killed_process_is_one_line(tmp_path, monkeypatch):
    """The system may kill the process that uses the most memory."""
    monkeypatch.setattr(local, "_start_child", killed)
    with pytest.raises(RunError, match="a training process was killed, perhaps because"):
        train_all([tiny(), tiny(seeds=5)], tmp_path, jobs=2)


def killed(threads, started, ending):
    started.set()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_cannot_start_is_one_line(tmp_path, monkeypatch):
    """As in a script without `if __name__ == "__main__"`, which each process imports."""
    monkeypatch.setattr(local, "_start_child", not_started)
    with pytest.raises(RunError, match=r"could not start.*`if __name__ == '__main__':`"):
        train_all([tiny(), tiny(seeds=5)], tmp_path, jobs=2)


def not_started(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_run_that_was_handed_out_ahead_does_not_start_after_a_failure(tmp_path, monkeypatch):
    ending = threading.Event()
    monkeypatch.setattr(local, "_ending", ending)
    monkeypatch.setattr(local, "execute", interrupted)
    with pytest.raises(Interrupted, match="by a signal"):
        local._train(tiny().arguments(), str(tmp_path), 1.0)
    assert ending.is_set()
    with pytest.raises(Interrupted, match="not started, because another run has failed"):
        local._train(tiny().arguments(), str(tmp_path), 1.0)


def interrupted(*_, **__):
    raise Interrupted("by a signal")


@pytest.mark.slow
def test_no_run_starts_after_one_has_failed(tmp_path):
    """The pool hands out runs ahead of time; with two at a time, at most one more was training."""
    runs = [Run.create("t-ls-small", name, rates=1e-3, seeds=1, frames=1e6) for name in METHODS]
    bad = runs[0].folder(tmp_path)
    bad.mkdir(parents=True)
    (bad / "run.json").write_text("{")
    with pytest.raises(RunError, match=r"run\.json is damaged"):
        train_all(runs, tmp_path, jobs=2)
    assert sum(run.folder(tmp_path).exists() for run in runs) <= 2


def test_a_sweep_needs_environments_and_methods(tmp_path):
    for given in (([], "rnn"), ("t-ls-small", []), ((), ())):
        with pytest.raises(SettingError, match="at least one environment and one method"):
            sweep(*given, out=tmp_path)


@pytest.mark.parametrize("jobs, expected", [(None, 3), (2, 2), (1, None), (9, 4)])
def test_the_given_number_of_jobs_counts(mps, jobs, expected, monkeypatch, tmp_path):
    """With one job, runs train in this process. Processes side by side do not reserve the GPU's memory."""
    started = []
    monkeypatch.setattr(local, "_side_by_side", lambda runs, jobs, *_: started.append(jobs) or ())
    monkeypatch.setattr(local, "execute", lambda run, out, **_: (RunFolder(run.folder(out)), True))
    train_all([tiny(seeds=n) for n in (1, 2, 3, 4)], tmp_path, jobs=jobs)
    assert started == ([] if expected is None else [expected])
    assert os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE") == ("false" if expected else None)


def test_more_cores_than_any_machine_has_are_refused():
    """Ray would wait for such a machine forever."""
    nodes = [
        {"Alive": True, "Resources": {"CPU": 2.0}},
        {"Alive": False, "Resources": {"CPU": 64.0}},
    ]
    ray = SimpleNamespace(nodes=lambda: nodes)
    on_ray.OnRay(cpus=2)._check_cpus(ray)
    with pytest.raises(
        SettingError, match=r"--cpus-per-run is 3, but no machine .* more than 2 cores"
    ):
        on_ray.OnRay(cpus=3)._check_cpus(ray)
