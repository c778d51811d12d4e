"""The run folder: one process writes at a time, and damage is reported."""

import errno
import gzip
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from splagger.errors import RunError
from splagger.runs.curves import CURVES
from splagger.runs.folder import RECORD, RunFolder, find_run, find_runs
from splagger.runs.record import RunRecord
from tests.tiny import contents

LOCKED = "import sys, time; from splagger.runs.folder import RunFolder as R"
LOCKED += "\nwith R(sys.argv[1]).locked(): print('in', flush=True); time.sleep(60)"


def test_the_lock_keeps_other_processes_out_until_its_owner_is_gone(tmp_path):
    command = [sys.executable, "-c", LOCKED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(RunError, match=r"another process .* choose another --out"):
            RunFolder(tmp_path).locked().__enter__()
        other.kill()
    with RunFolder(tmp_path).locked():
        pass


def test_a_record_is_read_as_it_was_written(tmp_path):
    folder = RunFolder(tmp_path)
    assert not folder.exists
    record = RunRecord({"a": [1, 2.5, None]}, {"env": "t-ls", "method": "rnn"})
    folder.write_record(record)
    assert folder.exists and folder.record() == record


def test_runs_are_found_below_any_folder(trained):
    assert [folder.path for folder in find_runs(trained.parents[2])] == [trained]
    assert find_runs(trained.parents[2] / "nowhere") == []


def test_the_only_run_below_a_folder_is_found(trained, tmp_path):
    for path in (trained, trained.parent, trained.parents[2]):
        assert find_run(path).path == trained
    for name in ("one", "two"):
        shutil.copytree(trained, tmp_path / name)
    with pytest.raises(RunError, match=r"there are 2 runs below .*; choose one: .*one, .*two$"):
        find_run(tmp_path)
    with pytest.raises(RunError, match=r"nothing is not a run folder: it does not exist"):
        find_run(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match=r"is not a run folder: it has no run\.json, and no folder"):
        find_run(tmp_path / "empty")


def test_a_cleared_folder_holds_nothing(copied):
    copied.write_curves("update\n0\n")
    with copied.locked():
        copied.clear()
    assert not contents(copied.path) and not copied.exists


@pytest.mark.parametrize("text", [b'{"run": ', b"", b"\xff\xfe\x00", b"[]"])
def test_a_damaged_record_is_reported_and_kept(copied, text):
    shutil.rmtree(copied.path / "checkpoints")
    (copied.path / RECORD).write_bytes(text)
    before = contents(copied.path)
    with pytest.raises(RunError, match=r"run\.json is damaged .*--force starts over"):
        copied.record()
    assert contents(copied.path) == before


@pytest.mark.parametrize("text", [b'{"run": ', b"", b"\xff\xfe\x00", b"[]"])
def test_a_damaged_record_is_read_from_the_checkpoint(copied, capsys, text):
    before = copied.record()
    (copied.path / RECORD).write_bytes(text)
    assert replace(copied.record(), finished=True) == before
    assert f"run.json is damaged; using its copy in the checkpoint of update {before.update}" in (
        capsys.readouterr().err
    )


def test_a_record_that_is_older_than_the_checkpoint_is_not_used(copied):
    """A process may be killed after it wrote a checkpoint and before it wrote run.json."""
    record = copied.record()
    copied.write_record(replace(record, update=record.update - 1, stopped={}, seconds=0.5))
    assert replace(copied.record(), finished=True) == record


ALTERED = {
    "a row is missing": lambda text: "".join(text.splitlines(True)[:-1]),
    "a digit is another": lambda text: text.replace("0.001", "0.002", 1),
    "empty": lambda text: "",
    "cut": lambda text: text[: len(text) // 2],
}


@pytest.mark.parametrize("change", ALTERED)
def test_altered_curves_are_read_from_the_checkpoint(copied, change):
    before, path = copied.curves(), copied.path / CURVES
    path.write_text(ALTERED[change](path.read_text()))
    assert copied.curves().equals(before)
    path.unlink()
    assert copied.curves().equals(before)


@pytest.mark.parametrize("change", ALTERED)
def test_altered_curves_are_refused_without_a_checkpoint(copied, change):
    shutil.rmtree(copied.path / "checkpoints")
    path = copied.path / CURVES
    path.write_text(ALTERED[change](path.read_text()))
    with pytest.raises(RunError, match=r"curves\.csv is damaged \(its content is not what was"):
        copied.curves()


def test_compressed_curves_have_the_same_digest(copied):
    before, path = copied.curves(), copied.path / CURVES
    shutil.rmtree(copied.path / "checkpoints")
    (copied.path / f"{CURVES}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert copied.curves().equals(before)


def test_leftovers_of_killed_processes_are_removed_by_the_next_owner(copied):
    leftovers = [copied.path / ".run.json.77.tmp", copied.path / "checkpoints/.3.safetensors.9.tmp"]
    for path in leftovers:
        path.touch()
    with copied.locked():
        assert not any(path.exists() for path in leftovers)


@pytest.mark.parametrize("name", ["nothing", "file/inside"])
def test_a_folder_without_a_record_is_not_a_run_folder(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"is not a run folder: it has no run\.json"):
        RunFolder(tmp_path / name).record()


def test_links_to_folders_are_followed_once(tmp_path):
    inner = tmp_path / "disk" / "t-ls" / "rnn" / "abc"
    inner.mkdir(parents=True)
    (inner / RECORD).write_text("{}")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "disk" / "t-ls")
    (root / "twice").symlink_to(tmp_path / "disk" / "t-ls")
    (inner.parent / "loop").symlink_to(tmp_path / "disk")
    (root / "self").symlink_to(root)
    assert [run.path for run in find_runs(root)] == [root / "link" / "rnn" / "abc"]
    assert len(find_runs(tmp_path / "disk")) == 1
    (tmp_path / "a-link").symlink_to(tmp_path / "disk")
    assert [run.path for run in find_runs(tmp_path)] == [inner]  # not by the links


def test_folders_that_may_not_be_read_are_named(tmp_path, monkeypatch):
    """Otherwise a comparison would silently lack a method."""
    (tmp_path / "locked").mkdir()
    before = os.scandir

    def refusing(path="."):
        if Path(path).name == "locked":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return before(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(RunError, match=r"cannot read .*locked \(Permission denied\)"):
        find_runs(tmp_path)

    def denied(self, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "is_file", denied)
    with pytest.raises(RunError, match=r"cannot read .* \(Permission denied\)"):
        RunFolder(tmp_path).exists  # noqa: B018
