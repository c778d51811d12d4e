"""The run folder: one process writes at a time, and damage is reported."""

import subprocess
import sys

import pytest

from splagger.errors import RunError
from splagger.runs.curves import write_curves
from splagger.runs.folder import RECORD, RunFolder, find_runs
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


def test_a_cleared_folder_holds_nothing_but_its_lock(copied):
    write_curves(copied.path, [{"update": 0}])
    with copied.locked():
        copied.clear()
    assert set(contents(copied.path)) == {"lock"} and not copied.exists


@pytest.mark.parametrize("text", [b'{"run": ', b"", b"\xff\xfe\x00", b"[]"])
def test_a_damaged_record_is_reported_and_kept(copied, text):
    (copied.path / RECORD).write_bytes(text)
    before = contents(copied.path)
    with pytest.raises(RunError, match=r"run\.json is damaged .*--force starts over"):
        copied.record()
    assert contents(copied.path) == before


@pytest.mark.parametrize("name", ["nothing", "file/inside"])
def test_a_folder_without_a_record_is_not_a_run_folder(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"is not a run folder: it has no run\.json"):
        RunFolder(tmp_path / name).record()
