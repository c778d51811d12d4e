"""Names of launchers, options that a launcher does not have, and clusters that are not there."""

import shutil
import socket
import sys
from pathlib import Path

import pytest

import splagger
from splagger.errors import DivergedError, RunError, SettingError
from splagger.launchers import api, on_slurm, parse, train_all
from splagger.launchers.local import Local
from splagger.launchers.on_ray import OnRay
from splagger.launchers.on_slurm import OnSlurm
from splagger.launchers.protocol import finished
from splagger.runs.folder import RunFolder
from tests.tiny import BATCH, SETTINGS, UPDATES, tiny


@pytest.mark.parametrize(
    "given, launcher",
    [
        (("local",), Local()),
        (("local", 3), Local(3)),
        (("ray",), OnRay()),
        (("ray:head:6379", None, 0.25), OnRay("head:6379", 0.25)),
        (("slurm:gpu", None, 2, 8, 12.0), OnSlurm("gpu", 2, 8, 12.0)),
    ],
)
def test_names_of_launchers(given, launcher):
    assert parse(*given) == launcher


@pytest.mark.parametrize(
    "given, message",
    [
        (("spark",), "there is no launcher 'spark'; choose local, ray"),
        (("ray:",), "there is no launcher 'ray:'"),
        (("local:here",), "there is no launcher 'local:here'"),
        (("ray", 2), "--jobs is not for --on ray, but for --on local"),
        (("local", None, 1.0), "--gpus-per-run is not for --on local, but for --on ray or slurm"),
        (("ray", None, None, None, 2.0), "--hours is not for --on ray, but for --on slurm"),
        (("slurm", None, 0.5), "must be a whole number on SLURM, got 0.5"),
        (("local", 0), "jobs must be at least 1, got 0"),
    ],
)
def test_bad_names_and_options_are_refused(given, message):
    with pytest.raises(SettingError, match=message):
        parse(*given)


@pytest.mark.parametrize(
    "option, kind, refused",
    [
        ({"jobs": 2}, "ray", "--jobs"),
        ({"gpus_per_run": 1}, "local", "--gpus-per-run"),
        ({"cpus_per_run": 2}, "local", "--cpus-per-run"),
        ({"hours": 2}, "local", "--hours"),
    ],
)
def test_sweeps_in_python_take_every_option_of_launchers(option, kind, refused, tmp_path):
    with pytest.raises(SettingError, match=f"^{refused} is not for --on {kind}"):
        splagger.sweep("t-ls-demo", "rnn", on=kind, out=tmp_path, **option)


@pytest.mark.parametrize("name, package", [("ray", "ray"), ("slurm", "submitit")])
def test_a_package_that_is_missing_is_named(name, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingError, match=rf"--on {name} needs .*splagger\[cluster\]"):
        train_all([tiny()], tmp_path, on=name)


def test_slurm_needs_its_commands(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", shutil)
    monkeypatch.setattr(on_slurm.shutil, "which", lambda name: None)
    with pytest.raises(SettingError, match="on a login node"):
        train_all([tiny()], tmp_path, on="slurm")


class FakeRay:
    """What the launcher asks of Ray before it starts tasks."""

    def __init__(self, gpus=0.0):
        self.gpus = gpus

    def is_initialized(self):
        return False

    def init(self, **_):
        pass

    def shutdown(self):
        pass

    def nodes(self):
        return [
            {"Alive": True, "Resources": {"GPU": self.gpus}},
            {"Alive": False, "Resources": {"GPU": 8.0}},
        ]


def test_a_cluster_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", FakeRay())
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(RunError, match=f"there is no Ray cluster at {address}"):
            train_all([tiny()], tmp_path, on=f"ray:{address}")
    for address in ("head", "head:", ":1", "head:port"):
        with pytest.raises(SettingError, match="is not the address of a Ray cluster"):
            train_all([tiny()], tmp_path, on=f"ray:{address}")


def test_gpus_that_are_not_there_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", FakeRay(gpus=2.0))
    with pytest.raises(
        SettingError, match="is 4, but no machine of the Ray cluster has more than 2"
    ):
        train_all([tiny()], tmp_path, on=OnRay(gpus=4))
    assert OnRay()._gpus(FakeRay(8.0)) == 1.0 and OnRay()._gpus(FakeRay(0.0)) == 0.0
    assert OnRay(gpus=0.25)._gpus(FakeRay(1.0)) == 0.25


def test_any_object_with_the_method_is_a_launcher(tmp_path):
    class Backward:
        def launch(self, runs, out, save_every):
            assert out == tmp_path and save_every == 7
            yield from (RunFolder(run.folder(out)) for run in reversed(runs))

    runs = [tiny(), tiny(rates=(1e-3,))]
    folders = train_all(runs, tmp_path, save_every=7, on=Backward())
    assert [folder.path.name for folder in folders] == [run.digest for run in runs]


def test_equal_runs_are_trained_once(tmp_path):
    class Counting:
        launched = ()

        def launch(self, runs, out, save_every):
            self.launched = tuple(runs)
            return iter(())

    launcher, runs = Counting(), [tiny(), tiny(seeds=1), tiny()]
    folders = train_all(runs, tmp_path, on=launcher)
    assert launcher.launched == (runs[0], runs[1])
    assert [folder.path.name for folder in folders] == [run.digest for run in runs]


def test_a_sweep_in_python_returns_all_curves(trained, tmp_path):
    shutil.copytree(trained, tiny().folder(tmp_path))  # so that nothing is trained
    grid = {"rates": (1e-3, 3e-4), "seeds": 2, "frames": UPDATES * BATCH, "settings": SETTINGS}
    found = splagger.sweep(["t-ls-small"], ["splagger"], out=tmp_path, **grid)
    alone = splagger.curves(trained)
    assert found[alone.columns].equals(alone)
    assert set(found["env"]) == {"t-ls-small"} and set(found["method"]) == {"splagger"}
    assert splagger.curves(found["folder"][0]).equals(alone)
    assert splagger.sweep("t-ls-small", ["splagger", "splagger"], out=tmp_path, **grid).equals(
        found
    )
    with pytest.raises(SettingError, match="--gpus-per-run is not for --on local"):
        splagger.sweep(["t-ls-small"], ["splagger"], gpus_per_run=1, out=tmp_path, **grid)


def test_a_sweep_in_python_varies_settings(trained, tmp_path, monkeypatch):
    """The curves name the values of each experiment."""
    skips, sizes = (0.25, 0.5), [(16, 8)]
    grid = {"rates": (1e-3, 3e-4), "seeds": 2, "frames": UPDATES * BATCH}
    settings = {k: v for k, v in SETTINGS.items() if k != "network.hidden"}
    vary = {"method.skip": skips, "network.hidden": sizes}

    def train_all(runs, out, **_):
        for run in runs:  # copies of one run stand for the training
            shutil.copytree(trained, run.folder(out))
            plan = run.describe()
            assert (plan["method"]["skip"], plan["network"]["hidden"]) in [
                (skip, [16, 8]) for skip in skips
            ]

    monkeypatch.setattr(api, "train_all", train_all)
    options = {"out": tmp_path, "settings": settings, "vary": vary, **grid}
    found = splagger.sweep("t-ls-small", "splagger", **options)
    assert list(found.groupby("folder", sort=False)["method.skip"].first()) == list(skips)
    assert set(found["network.hidden"]) == {(16, 8)} and found["folder"].nunique() == 2
    for wrong, message in (
        ({"method.skip": []}, "a list of values"),
        ({"method.skip": "0.5"}, "vary takes a list of values for method.skip, got '0.5'"),
        ({"ppo.steps": [20, 40]}, "ppo.steps has one value in the settings"),
        ({"ppo.entropy": [0, 1]}, "entropy_weights and ppo.entropy are one setting"),
    ):
        with pytest.raises(SettingError, match=message):
            splagger.sweep(
                "t-ls-small", "splagger", **options | {"vary": wrong, "entropy_weights": 0.1}
            )


def test_errors_on_a_cluster_are_raised_once_all_runs_have_ended():
    def fail(error):
        raise error

    good = RunFolder(Path("good"))
    results = [lambda: fail(RunError("a")), lambda: good, lambda: fail(DivergedError("b"))]
    found = []
    with pytest.raises(RunError, match=r"a \| b"):
        found.extend(finished(results))
    with pytest.raises(DivergedError, match="b"):
        list(finished(results[1:]))
    with pytest.raises(ZeroDivisionError):
        list(finished([lambda: 1 / 0, *results]))
