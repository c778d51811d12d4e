"""Whatever stops a run, the same command goes on, and the end is the same to the last bit."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from splagger.cli import main
from splagger.runs.folder import RunFolder
from splagger.training import runner
from tests.tiny import (
    BATCH,
    SHORT,
    UPDATES,
    arguments,
    bits,
    contents,
    example,
    finish,
    start,
    tiny,
)


def command(out: Path, updates=UPDATES, *more: str) -> list[str]:
    where = ["--out", str(out), "--save-every", "0", *more]
    return ["train", "t-ls-small", "splagger", *where, *arguments(updates * BATCH)]


def folder(out: Path) -> RunFolder:
    return RunFolder(out / "t-ls-small" / "splagger" / tiny().digest)


def wait_for_update(process, out: Path, update: int, patience=120) -> None:
    """Returns once a checkpoint of this update, or of a later one, is there."""
    end = time.monotonic() + patience
    while max(folder(out).checkpoints(), default=-1) < update:
        assert process.poll() is None, f"it ended by itself: {process.communicate()}"
        assert time.monotonic() < end, "no progress"
        time.sleep(0.002)


def same_end(one: RunFolder, other: RunFolder) -> bool:
    """Equal curves, byte by byte, and equal states, bit by bit."""
    curves = (one.path / "curves.csv").read_bytes() == (other.path / "curves.csv").read_bytes()
    return curves and bits(one.restore(example())) == bits(other.restore(example()))


@pytest.fixture
def finished(trained, tmp_path) -> Path:
    """Where a finished run lies that may be changed."""
    shutil.copytree(trained.parents[2], tmp_path / "out")
    return tmp_path / "out"


def test_a_run_that_was_killed_and_interrupted_ends_as_if_it_had_not_been(trained, tmp_path):
    chance = random.Random()
    for update in (1, 3):
        process = start(*command(tmp_path))
        wait_for_update(process, tmp_path, update)
        time.sleep(chance.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        finish(process)
        assert process.returncode == -signal.SIGKILL
        assert not folder(tmp_path).read()["finished"]

    process = start(*command(tmp_path))
    wait_for_update(process, tmp_path, max(folder(tmp_path).checkpoints()) + 1)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert err.endswith("\nsplagger: stopped and saved; the same command goes on from here\n")
    assert "Traceback" not in err
    record = folder(tmp_path).read()
    assert not record["finished"] and [record["update"]] == folder(tmp_path).checkpoints()

    main(command(tmp_path))
    assert folder(tmp_path).read()["finished"]
    assert same_end(folder(tmp_path), RunFolder(trained))


def test_a_finished_run_says_so_and_is_left_alone(finished, capsys):
    before = contents(finished)
    main(command(finished))
    assert "finished before; nothing to do" in capsys.readouterr().out
    assert contents(finished) == before


def test_force_starts_over_and_ends_the_same(trained, finished):
    (folder(finished).path / "curves.csv").write_text("nonsense\n")
    folder(finished).write({"finished": True, "update": 99})
    main(command(finished, UPDATES, "--force"))
    assert same_end(folder(finished), RunFolder(trained))
    assert folder(finished).read()["update"] == UPDATES


def test_more_frames_extend_a_run_to_what_it_would_have_been(trained, tmp_path):
    main(command(tmp_path, SHORT))
    short = folder(tmp_path).read_curves()
    assert folder(tmp_path).read()["finished"] and short[-1]["update"] == SHORT
    main(command(tmp_path))
    assert folder(tmp_path).path.name == trained.name
    assert same_end(folder(tmp_path), RunFolder(trained))


def test_fewer_frames_than_were_trained_leave_a_run_alone(finished):
    before = contents(finished)
    assert not runner.execute(tiny(frames=BATCH), finished, show=False)[1]
    assert contents(finished) == before


def test_a_kill_before_the_first_checkpoint_starts_at_the_start(trained, finished):
    run = folder(finished)
    shutil.rmtree(run.path / "checkpoints")
    run.write(run.read() | {"finished": False, "update": 0})
    assert runner.execute(tiny(), finished, show=False)[1]
    assert same_end(run, RunFolder(trained))


def test_rows_after_the_last_checkpoint_are_dropped_when_a_run_goes_on(trained, tmp_path):
    main(command(tmp_path, SHORT))
    run = folder(tmp_path)
    rows = run.read_curves()
    run.write_curves(rows + [row | {"update": SHORT + 1} for row in rows[-4:]])
    main(command(tmp_path))
    assert same_end(run, RunFolder(trained))
