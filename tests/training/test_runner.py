"""Executing a run from start to end: what it writes, what happens to members that diverge, and how it fails."""

import errno
import math
import os
import re
import shlex
import shutil
import signal
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest

import splagger
from splagger.agents.loading import recreate
from splagger.cli import main
from splagger.errors import DivergedError, Interrupted, RunError
from splagger.runs.checkpoints import restore_checkpoint
from splagger.runs.folder import RunFolder, find_runs
from splagger.stats.summary import summarize
from splagger.training import progress, runner
from tests.tiny import BATCH, SHORT, UPDATES, arguments, contents, finish, start, tiny

EPISODES = [f"return_episode_{k}" for k in (1, 2, 3, 4)]
RUN_COLUMNS = ["rate", "entropy_weight", "kl_weight", "temperature", "seed"]
TRAINING = ["reward_per_step", "policy_loss", "value_loss", "entropy", "kl", "reconstruction_loss"]
TRAINING += ["encoder_grad_norm", "policy_grad_norm", "clip_fraction"]
TRAINING += ["first_ratio_error", "explained_variance"]


@pytest.fixture(scope="module")
def on_three_devices(compiled_once, tmp_path_factory):
    """(process, folder) of two updates on three devices."""
    out, flags = tmp_path_factory.mktemp("devices"), os.environ["XLA_FLAGS"]
    command = ["train", "t-ls-small", "splagger", "--out", str(out), *arguments(2 * BATCH)]
    process = start(*command, XLA_FLAGS=f"{flags} --xla_force_host_platform_device_count=3")
    yield process, out
    process.kill()
    process.communicate()


def program():
    return runner.compile_grid(tiny().config, tiny().points)


@pytest.fixture(scope="module")
def diverged(tmp_path_factory):
    """(folder, printed notes) of a run whose first rate is far too high."""
    notes = []
    with pytest.MonkeyPatch.context() as patch:
        view = lambda *rest: progress.Lines(*rest[:3], write=notes.append)  # noqa: E731
        patch.setattr(progress, "choose", view)
        run = tiny(rates=(1e38, 1e-3))
        folder, _ = runner.execute(run, tmp_path_factory.mktemp("diverged"))
    return folder, "\n".join(notes)


def test_rows_of_a_logger_are_its_own(tmp_path):
    """One that takes something out of a row does not take it out of the curves."""
    folder, _ = runner.execute(tiny(), tmp_path, show=False, on_metrics=lambda row: row.clear())
    assert {"frames", "seed", "return"} <= set(folder.curves().columns)


def test_curves_have_one_row_per_evaluation_and_member(trained):
    curves = pandas.read_csv(trained / "curves.csv")
    columns = ["update", "frames", *RUN_COLUMNS, "return", *EPISODES, *TRAINING]
    assert list(curves.columns) == columns
    rows = [(u, p.rate, p.seed) for u in range(UPDATES + 1) for p in tiny().points]
    assert list(curves[["update", "rate", "seed"]].itertuples(index=False, name=None)) == rows
    assert (curves.frames == curves["update"] * BATCH).all()
    assert np.allclose(curves[EPISODES].sum(axis=1), curves["return"])
    trained_rows = curves["update"] > 0
    assert np.isfinite(curves[trained_rows]).all().all()
    assert curves[~trained_rows][TRAINING].isna().all().all()


def test_the_record_is_enough_to_make_the_run_again(trained):
    record = RunFolder(trained).record()
    assert recreate(record.arguments, record.plan, trained).digest == trained.name
    assert record.plan["ppo"]["steps"] == 20 and record.arguments["env"] == "t-ls-small"
    origin = record.provenance
    assert {"command", "commit", "device", "platform", "started", "versions"} <= set(origin)
    assert {"python", "splagger", "jax", "jaxlib", "numpy"} <= set(origin["versions"])
    assert origin["versions"]["jax"] == jax.__version__ and "cpu" in origin["device"]
    assert (record.finished, record.update, record.stopped) == (True, UPDATES, {})
    assert record.frames == UPDATES * BATCH and record.frames_per_second > 0


def test_a_member_that_diverges_is_reported_and_the_others_continue(diverged):
    folder, notes = diverged
    for seed in (0, 1):
        assert re.search(
            rf"rate 1e\+38, seed {seed} diverged \(NaN or infinity\) at update 1: \w+ (is|are) not finite; the",
            notes,
        )
    record = folder.record()
    assert record.finished and record.update == UPDATES
    assert set(record.stopped.values()) == {1} and len(record.stopped) == 2
    assert all("rate=1e+38" in name for name in record.stopped)
    curves = splagger.curves(folder.path)
    healthy = curves[curves.rate == 1e-3]
    assert len(healthy) == 2 * (UPDATES + 1)
    assert np.isfinite(healthy[healthy["update"] > 0]).all().all()
    assert (curves[curves.rate == 1e38]["update"] == 0).all()


def test_a_lack_of_memory_says_how_to_continue(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "compile_grid", lambda *_: jnp.zeros(1 << 50).block_until_ready())
    with pytest.raises(
        RunError, match=r"out of memory \(RESOURCE.* same command again.* fewer seeds"
    ):
        runner.execute(tiny(), tmp_path, show=False)


def test_a_member_that_diverges_does_not_change_the_others(diverged, trained):
    ours, theirs = splagger.curves(diverged[0].path), splagger.curves(trained)
    ours, theirs = (c[c.rate == 1e-3].reset_index(drop=True) for c in (ours, theirs))
    pandas.testing.assert_frame_equal(ours, theirs, rtol=1e-4)


def test_a_member_that_diverged_is_never_the_best(diverged):
    folder, _ = diverged
    assert summarize(folder).rate == 0.001
    assert [splagger.load(folder.path, seed=s).point.rate for s in (0, 1)] == [1e-3, 1e-3]


def broken(real, after: int, members=(0, 1, 2, 3)):
    """Returns a program in which the losses of some members are NaN after some blocks."""
    calls = []

    def block(state):
        calls.append(0)
        state, metrics = real.block(state)
        lost = np.isin(np.arange(4), members) & (len(calls) > after)
        return state, metrics | {"policy_loss": np.where(lost, math.nan, metrics["policy_loss"])}

    return real._replace(block=block)


def test_a_run_fails_if_all_members_diverged_and_keeps_its_last_healthy_checkpoint(
    tmp_path, monkeypatch
):
    real = program()
    fake = broken(real, after=2)
    monkeypatch.setattr(runner, "compile_grid", lambda *_: fake)
    reason = (
        r"every member diverged \(NaN or infinity\): rate 0\.001, seed 0 at update 3: policy_loss is not "
        r"finite; .*; and 1 more; the checkpoint of update 2 stays\. .*--force starts this run over"
    )
    with pytest.raises(DivergedError, match=reason):
        runner.execute(tiny(), tmp_path, save_every=0, show=False)
    (folder,) = find_runs(tmp_path)
    record = folder.record()
    assert not record.finished and record.ended and record.update == 3
    assert "seed 1 at update 3: policy_loss" in record.failed
    assert list(record.stopped.values()) == [3] * 4
    assert splagger.curves(folder.path)["update"].max() == folder.saved_updates()[-1] == 2
    assert summarize(folder) and np.isfinite(splagger.load(folder.path).act(np.zeros(5)))
    before = contents(tmp_path)
    with pytest.raises(DivergedError, match=reason):  # at once, and nothing changes
        runner.execute(tiny(), tmp_path, show=False)
    assert contents(tmp_path) == before
    with pytest.raises(SystemExit) as end:
        main([*shlex.split(tiny().command())[1:], "--out", str(tmp_path)])
    assert end.value.code == 2
    monkeypatch.setattr(runner, "compile_grid", lambda *_: real)
    runner.execute(tiny(frames=BATCH), tmp_path, force=True, show=False)
    assert folder.record().finished and folder.record().failed is None


def test_agents_of_a_run_that_failed_before_its_first_checkpoint_are_not_loaded(
    tmp_path, monkeypatch
):
    fake = broken(program(), after=0)
    monkeypatch.setattr(runner, "compile_grid", lambda *_: fake)
    with pytest.raises(DivergedError, match="there is no checkpoint"):
        runner.execute(tiny(), tmp_path, show=False)
    (folder,) = find_runs(tmp_path)
    with pytest.raises(RunError, match=r"no checkpoint, .*: every member diverged"):
        splagger.load(folder.path)


def test_a_run_of_an_older_version_whose_members_all_diverged_has_failed(trained, tmp_path):
    shutil.copytree(trained.parents[2], tmp_path / "out")
    (folder,) = find_runs(tmp_path)
    record = folder.record()
    stopped = {f"member {index}": UPDATES for index in range(4)}
    folder.write_record(replace(record, stopped=stopped))
    with pytest.raises(DivergedError, match="every member diverged"):
        runner.execute(tiny(), tmp_path / "out", show=False)


def test_seeds_with_similar_names_are_different_members(tmp_path, monkeypatch):
    fake = broken(program(), after=0, members=[0])
    monkeypatch.setattr(runner, "compile_grid", lambda *_: fake)
    run = tiny(seeds=(1_000_000, 1_000_001), frames=2 * BATCH)
    folder, _ = runner.execute(run, tmp_path, show=False)
    assert len(folder.record().stopped) == 1
    rows = splagger.curves(folder.path).groupby(["rate", "seed"]).size()
    assert rows.to_dict() == {(p.rate, p.seed): 3 for p in run.points} | {(1e-3, 1_000_000): 1}


def test_a_second_sigterm_does_not_end_a_process_that_saves(tmp_path, monkeypatch):
    """Linux sends several to the children of a process that is killed, one for each of its threads."""

    def terminate(*args):
        os.kill(os.getpid(), signal.SIGTERM)
        return args

    save = runner.save_checkpoint
    monkeypatch.setattr(runner, "save_checkpoint", lambda *args: save(*terminate(*args)))
    with pytest.raises(Interrupted, match="stopped and saved"):
        runner.execute(tiny(), tmp_path, show=False, on_metrics=terminate)
    (folder,) = find_runs(tmp_path)
    assert folder.saved_updates() == [folder.record().update] and not folder.record().finished


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


FAILURES = {
    "start": "splagger.runs.folder.write_atomically",
    "checkpoint": "splagger.runs.checkpoints.write_arrays",
}


@pytest.mark.parametrize("moment", FAILURES)
def test_a_full_disk_is_reported_and_the_last_checkpoint_stays(tmp_path, monkeypatch, moment):
    folder, _ = runner.execute(tiny(frames=SHORT * BATCH), tmp_path, show=False)
    before = contents(folder.path / "checkpoints")
    with monkeypatch.context() as patch:
        patch.setattr(FAILURES[moment], full_disk)
        with pytest.raises(RunError, match=r"No space left.* free some space"):
            runner.execute(tiny(), tmp_path, save_every=0.0, show=False)
    assert contents(folder.path / "checkpoints") == before
    assert restore_checkpoint(folder, program().example)[0] == SHORT
    shutil.rmtree(folder.path / "tensorboard")
    assert runner.execute(tiny(), tmp_path, show=False)[1] and folder.record().finished


def test_metrics_are_one_number_per_member(trained):
    restored = restore_checkpoint(RunFolder(trained), program().example)
    _, metrics = program().block(restored[1])
    assert set(metrics) == {"return", *EPISODES, *TRAINING, "fault"}
    assert list(metrics["fault"]) == [None] * 4
    assert {(type(m), m.shape) for m in metrics.values()} == {(np.ndarray, (4,))}


def test_a_restored_state_is_not_compiled_for_again(trained, caplog):
    program().block(program().init())
    restored = restore_checkpoint(RunFolder(trained), program().example)[1]
    with jax.log_compiles():
        program().block(restored)
    assert "compil" not in caplog.text.lower()


DEVICES = """
import numpy as np
from splagger.training.program import _Devices
from tests.tiny import tiny

run = tiny(rates=(1e-3, 3e-4), seeds=2)
devices = _Devices(4)
tunables, keys = devices.arrays(run.points)
moved = devices.over_runs(lambda rate, x: {"policy_loss": rate * x})(tunables.learning_rate, devices.put(np.arange(4.0)))
loss = moved["policy_loss"]
print(len(loss.sharding.device_set), loss.shape, keys.shape, *np.asarray(devices.unpadded(loss)).tolist())
"""


def test_several_devices_share_the_members_and_padding_is_dropped():
    """The division of the members; `make test-slow` trains a whole run this way."""
    flags = os.environ["XLA_FLAGS"]
    process = start(code=DEVICES, XLA_FLAGS=f"{flags} --xla_force_host_platform_device_count=3")
    code, out, err = finish(process)
    assert code == 0, err
    assert out.startswith("3 (6,) (6,) ")
    rates = np.float32([point.rate for point in tiny().points])
    np.testing.assert_allclose([float(x) for x in out.split()[3:]], rates * np.arange(4), rtol=1e-6)


@pytest.mark.slow
def test_several_devices_share_the_runs_and_give_the_same_curves(trained, on_three_devices):
    process, out = on_three_devices
    code, _, err = finish(process)
    assert code == 0, err
    (folder,) = find_runs(out)
    assert folder.record().provenance["device"].startswith("3 ")
    ours, theirs = splagger.curves(folder.path), splagger.curves(trained)
    theirs = theirs[theirs["update"] <= 2]
    pandas.testing.assert_frame_equal(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_run_of_several_devices_can_be_loaded_on_one(on_three_devices):
    process, out = on_three_devices
    process.wait(timeout=300)
    (folder,) = find_runs(out)
    assert splagger.load(folder.path, seed=1).point.seed == 1


def test_an_environment_that_returns_nan_is_reported_and_not_finished(tmp_path, monkeypatch):
    evaluated = {name: np.full(4, np.nan) for name in ("return", *EPISODES)}
    monkeypatch.setattr(type(program()), "evaluate", lambda self, state: evaluated)
    for _ in range(2):  # the second time too
        with pytest.raises(RunError, match="return is nan before any training; look for NaN"):
            runner.execute(tiny(), tmp_path, show=False)
    (folder,) = find_runs(tmp_path)
    assert not folder.record().finished
    with pytest.raises(RunError, match="has not reached its first evaluation yet"):
        splagger.curves(folder.path)


def test_the_first_checkpoint_comes_soon(compiled_once, tmp_path, monkeypatch):
    """A stop in the first minutes would otherwise lose everything."""
    monkeypatch.setattr(runner, "FIRST_SAVE", 0.0)
    write, saved = runner.save_checkpoint, []

    def save(folder, update, *rest):
        saved.append(update)
        write(folder, update, *rest)

    monkeypatch.setattr(runner, "save_checkpoint", save)
    runner.execute(tiny(), tmp_path, show=False)
    assert saved == [1, UPDATES]


def test_curves_are_found_below_a_folder(trained):
    found = splagger.curves(trained.parent)
    assert found.attrs["folder"] == str(trained) and len(found) == len(splagger.curves(trained))
