"""The overview of experiments: every state is recognized from files, and damaged ones do not hide the others."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from splagger import cli
from splagger.cli import status_command
from splagger.errors import Interrupted, RunError
from splagger.files import lock
from splagger.files.lock import LostLockError
from splagger.files.processes import this_process
from splagger.runs.folder import RunFolder
from splagger.status import Reporter, overview, status_table, write_plan
from splagger.status.plan import read_plan
from splagger.status.progress_file import PROGRESS, read_progress
from splagger.tables import Table
from tests.synthetic import learning, write_run
from tests.tiny import tiny


@pytest.fixture
def sweep(trained, tmp_path):
    """A planned sweep of three runs below `tmp_path`, the first of which is finished: their folders."""
    runs = [tiny(), tiny(method="rnn"), tiny(method="amrl")]
    shutil.copytree(trained, runs[0].folder(tmp_path))
    write_plan(tmp_path, runs)
    return [RunFolder(run.folder(tmp_path)) for run in runs]


def begun(folder, like, **changes):
    """Writes the record of an unfinished run."""
    folder.path.mkdir(parents=True, exist_ok=True)
    record = like.record()
    arguments = record.arguments | {"method": folder.path.parent.name}
    record = replace(record, finished=False, arguments=arguments, update=3, frames=240)
    folder.write_record(replace(record, **changes))


def row_of(tmp_path, method):
    (row,) = [row for row in overview(tmp_path).rows if row.method == method]
    return row


def test_a_sweep_is_shown_before_its_runs_start(sweep, tmp_path):
    rows = overview(tmp_path).rows
    assert [(r.method, r.state, r.members) for r in rows] == [
        ("amrl", "waiting", 4),
        ("rnn", "waiting", 4),
        ("splagger", "finished", 4),
    ]
    assert [row.progress for row in rows] == [0.0, 0.0, 1.0]
    assert status_table(rows).title == "3 experiments: 2 waiting, 1 finished"


def test_runs_that_differ_in_settings_are_told_apart(trained, tmp_path):
    """The settings are shown before and after a run, unless all runs share them."""
    runs = [tiny(overrides={"method.skip": skip}) for skip in (0.25, 0.75)]
    shutil.copytree(trained, runs[0].folder(tmp_path))
    record = RunFolder(trained).record()
    overrides = dict(runs[0].overrides)
    RunFolder(runs[0].folder(tmp_path)).write_record(
        replace(record, arguments=record.arguments | {"overrides": overrides})
    )
    path = write_plan(tmp_path, runs)
    table = status_table(overview(tmp_path).rows)
    column = table.head.index("settings")
    assert [row[column] for row in table.rows] == ["method.skip=0.25", "method.skip=0.75"]
    assert "settings" not in status_table(overview(tmp_path).rows[:1]).head
    old = json.loads(path.read_text())
    for run in old["runs"]:
        del run["settings"]  # as plans of older versions
    path.write_text(json.dumps(old))
    assert read_plan(path).runs[0].settings == []
    old["runs"][0]["settings"] = ["\x1b[2J"]
    path.write_text(json.dumps(old))
    with pytest.raises(RunError, match="damaged"):
        read_plan(path)


def test_experiments_that_are_alike_are_named_by_their_folders(tmp_path):
    runs = [tiny(), tiny(seeds=(5, 6)), tiny(method="rnn")]
    write_plan(tmp_path, runs)
    table = status_table(overview(tmp_path).rows)
    named = [row[table.head.index("settings")] for row in table.rows]
    assert sorted(named) == ["", *sorted(f"run {run.digest}" for run in runs[:2])]


def test_a_longer_run_waits_for_its_frames(sweep, tmp_path):
    write_plan(tmp_path, [tiny(frames=24 * 80)])
    row = row_of(tmp_path, "splagger")
    assert (row.state, row.progress, row.reason) == ("waiting", 0.5, "more frames are planned")


def test_a_running_experiment_shows_where_and_how_far_it_is(sweep, tmp_path):
    finished, folder, _ = sweep
    begun(folder, finished)
    with folder.locked():
        assert row_of(tmp_path, "rnn").reason == "starting"
        with Reporter(folder, updates=12, update=3, every=0.0) as reporter:
            row = row_of(tmp_path, "rnn")
            assert (row.state, row.reason, row.progress) == ("running", "compiling", 0.25)
            reporter.show(6, frames_per_second=100.0, frames_left=6000.0)
            row = row_of(tmp_path, "rnn")
    assert (row.state, row.reason, row.progress) == ("running", "", 0.5)
    assert row.node == this_process().host and row.frames_per_second == 100.0
    assert 50 < row.eta <= 60
    assert row_of(tmp_path, "rnn").state == "interrupted"  # until run.json says that it is finished


ENDS = {
    "interrupted": (Interrupted("stopped and saved"), "stopped and saved"),
    "failed": (RunError("the disk\nis full"), "the disk"),
}


@pytest.mark.parametrize("state", ENDS)
def test_the_reason_of_an_end_is_kept(sweep, tmp_path, state):
    error, reason = ENDS[state]
    finished, folder, _ = sweep
    begun(folder, finished)
    with pytest.raises(type(error)), folder.locked(), Reporter(folder, 12):
        raise error
    row = row_of(tmp_path, "rnn")
    assert (row.state, row.reason, row.node) == (state, reason, this_process().host)


def test_divergence_is_a_failure(sweep, tmp_path):
    begun(sweep[1], sweep[0], failed="every member diverged: rate 1")
    row = row_of(tmp_path, "rnn")
    assert (row.state, row.reason) == ("failed", "every member diverged: rate 1")


KILLED = """
import sys, time
from splagger.runs.folder import RunFolder
from splagger.status import Reporter
folder = RunFolder(sys.argv[1])
with folder.locked(), Reporter(folder, 12) as reporter:
    reporter.show(6, 50.0, 300.0)
    print("in", flush=True)
    time.sleep(60)
"""


def test_a_killed_experiment_is_stale(sweep, tmp_path):
    finished, folder, _ = sweep
    begun(folder, finished)
    command = [sys.executable, "-c", KILLED, str(folder.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"in\n"
        assert row_of(tmp_path, "rnn").state == "running"
        process.kill()
    row = row_of(tmp_path, "rnn")
    assert row.state == "stale" and f"process {process.pid} on" in row.reason


def test_an_experiment_of_another_machine_is_stale_without_heartbeats(sweep, tmp_path, monkeypatch):
    finished, folder, _ = sweep
    begun(folder, finished)
    here = this_process()
    monkeypatch.setattr(lock, "this_process", lambda: here._replace(host="far", boot="x"))
    with folder.locked():
        (file,) = (folder.path / "owner").iterdir()
        assert (row_of(tmp_path, "rnn").state, row_of(tmp_path, "rnn").node) == ("running", "far")
        os.utime(file, (time.time() - 2 * lock.LIMIT,) * 2)
        assert row_of(tmp_path, "rnn").state == "stale"


def test_damaged_folders_are_named_and_the_others_shown(sweep, tmp_path):
    finished, folder, third = sweep
    begun(folder, finished)
    (folder.path / "run.json").write_text("{")
    (finished.path / "run.json").write_text("{")  # its checkpoint has a copy
    begun(third, finished)
    (third.path / PROGRESS).write_text('{"host": 3}')
    (tmp_path / "plans" / "bad.json").write_text("[]")
    found = overview(tmp_path)
    assert [row.state for row in found.rows] == ["interrupted", "damaged", "finished"]
    assert "run.json is damaged" in found.rows[1].reason
    assert "using its copy in the checkpoint" in found.rows[2].reason
    assert len(found.notes) == 1 and "bad.json is damaged" in found.notes[0]


def test_waiting_runs_of_a_dead_command_are_pointed_out(sweep, tmp_path):
    assert overview(tmp_path).notes == []
    (path,) = (tmp_path / "plans").iterdir()
    data = json.loads(path.read_text())
    data["process"]["pid"] = 2**22 + 1
    path.write_text(json.dumps(data))
    (note,) = overview(tmp_path).notes
    assert note.startswith("2 waiting: the command that planned them") and "give it again" in note


def test_the_same_runs_replace_their_plan(tmp_path):
    path = write_plan(tmp_path, [tiny()], "ray")
    assert write_plan(tmp_path, [tiny()]) == path
    assert write_plan(tmp_path, [tiny(method="rnn")]) != path
    plan = read_plan(path)
    assert plan.launcher == "local" and plan.process == this_process()
    assert plan.runs[0][1:5] == ("t-ls-small", "splagger", 4, 12)
    assert "ppo.envs=4" in plan.runs[0].settings


def test_progress_is_written_now_and_then(tmp_path):
    folder = RunFolder(tmp_path)
    with Reporter(folder, 12) as reporter:
        reporter.show(1, 10.0, 110.0)
        assert read_progress(tmp_path)[0].update == 0
        reporter.every = 0.0
        reporter.show(2, 20.0, 100.0)
        progress, _ = read_progress(tmp_path)
        assert (progress.update, progress.frames_per_second) == (2, 13.0)
    assert read_progress(tmp_path)[0].phase == "finished"


def test_a_process_that_lost_its_folder_reports_nothing(tmp_path):
    def lose():
        folder = RunFolder(tmp_path)
        with folder.locked(), Reporter(folder, 12, every=0.0) as reporter:
            shutil.rmtree(tmp_path / "owner")
            reporter.show(1, 10.0, 110.0)

    with pytest.raises(LostLockError):
        lose()
    assert read_progress(tmp_path)[0].phase == "compiling"


def test_the_command_prints_a_table_or_json(sweep, tmp_path, capsys):
    cli.main(["status", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "3 experiments: 2 waiting, 1 finished" and "amrl" in lines[3]
    cli.main(["status", str(tmp_path), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [one["state"] for one in found["experiments"]] == ["waiting", "waiting", "finished"]
    with pytest.raises(SystemExit):
        cli.main(["status", str(tmp_path / "nowhere")])
    assert "there is no folder" in capsys.readouterr().err


def test_watching_ends_with_the_last_experiment(sweep, tmp_path, monkeypatch, capsys):
    def finish():
        for folder in sweep[1:]:
            begun(folder, sweep[0], finished=True, update=12)

    monkeypatch.setattr(status_command, "_pause", finish)
    cli.main(["status", str(tmp_path), "--watch"])
    titles = [line for line in capsys.readouterr().out.splitlines() if "experiments" in line]
    assert titles == ["3 experiments: 2 waiting, 1 finished", "3 experiments: 3 finished"]


def test_an_empty_folder_has_no_experiments(tmp_path):
    assert overview(tmp_path) == ([], [])


def modules_after(code: str) -> set[str]:
    """Returns the modules that are loaded in a new process after this code."""
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_reading_the_status_needs_no_jax(tmp_path):
    loaded = modules_after(f"from splagger import status; status.overview({str(tmp_path)!r})")
    assert "splagger.status" in loaded and not {"jax", "pandas"} & loaded


def test_the_command_line_starts_without_jax():
    loaded = modules_after("from splagger import cli")
    assert "splagger.cli" in loaded and "jax" not in loaded


def test_the_status_of_the_present_folder(tmp_path, monkeypatch):
    folder = write_run(tmp_path, "t-ls", "rnn", learning(3))
    monkeypatch.chdir(folder)
    (row,) = overview(Path(".")).rows
    assert (row.env, row.method) == ("t-ls", "rnn")


def test_narrow_terminals_show_no_empty_lines_and_plain_ones_no_codes(
    tmp_path, monkeypatch, capsys
):
    found = Table("Title", ("name", ""), [("x" * 30, ""), ("y", "path")]).text(20)
    assert found.splitlines() == ["Title", "  name", "  " + "x" * 30, "  y", "    path"]
    write_run(tmp_path, "t-ls", "rnn", learning(3))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    cli.main(["status", str(tmp_path), "--watch"])
    assert status_command.CLEAR not in capsys.readouterr().out
