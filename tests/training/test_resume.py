"""Whatever stops a run, the same command continues it and ends with the same bits."""

import random
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from splagger.cli import main
from splagger.runs.checkpoints import restore_checkpoint
from splagger.runs.curves import format_curves
from splagger.runs.folder import RunFolder
from splagger.runs.run import Run
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
    options = ["--out", str(out), "--save-every", "0", *more]
    return ["train", "t-ls-small", "splagger", *options, *arguments(updates * BATCH)]


def folder(out: Path) -> RunFolder:
    return RunFolder(out / "t-ls-small" / "splagger" / tiny().digest)


def wait_for_update(process, out: Path, update: int, patience=120) -> None:
    """Waits for a checkpoint of this update or a later one."""
    end = time.monotonic() + patience
    while max(folder(out).saved_updates(), default=-1) < update:
        assert process.poll() is None, f"the process ended by itself: {process.communicate()}"
        assert time.monotonic() < end, "no progress"
        time.sleep(0.05)


def same_end(one: RunFolder, other: RunFolder) -> bool:
    """Whether the curves are equal byte by byte, and the states bit by bit."""
    curves = (one.path / "curves.csv").read_bytes() == (other.path / "curves.csv").read_bytes()
    states = [bits(restore_checkpoint(folder, example())[:2]) for folder in (one, other)]
    return curves and states[0] == states[1]


@pytest.fixture
def finished(trained, tmp_path) -> Path:
    """A copy of a folder with a finished run, which a test may change."""
    shutil.copytree(trained.parents[2], tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("kills", [(2,), pytest.param((1, 3), marks=pytest.mark.slow)])
def test_a_killed_and_interrupted_run_ends_like_an_undisturbed_one(kills, trained, tmp_path):
    delay = random.Random()
    for update in kills:
        process = start(*command(tmp_path))
        wait_for_update(process, tmp_path, update)
        time.sleep(delay.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        finish(process)
        assert process.returncode == -signal.SIGKILL
        assert not folder(tmp_path).record().finished

    process = start(*command(tmp_path))
    wait_for_update(process, tmp_path, max(folder(tmp_path).saved_updates()) + 1)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert err.endswith("\nsplagger: stopped and saved; the same command continues from here\n")
    assert "Traceback" not in err
    record = folder(tmp_path).record()
    assert not record.finished and record.update == folder(tmp_path).saved_updates()[-1]

    main(command(tmp_path))
    assert folder(tmp_path).record().finished
    assert same_end(folder(tmp_path), RunFolder(trained))


def test_the_last_checkpoint_says_that_the_run_is_finished(tmp_path):
    """Also if a checkpoint is due at the last update: the record may be read from it."""
    run, _ = runner.execute(tiny(frames=SHORT * BATCH), tmp_path, save_every=0, show=False)
    found = restore_checkpoint(run, example())
    assert (found.update, found.record.finished) == (SHORT, True)


def test_a_finished_run_is_reported_and_left_alone(finished, capsys, monkeypatch):
    before, done = contents(finished), folder(finished)
    main(command(finished))
    assert (
        f"already finished at {UPDATES * BATCH:,} frames (--force starts over, more --frames extend it): "
        in (capsys.readouterr().out)
    )
    monkeypatch.setattr(Run, "can_be_extended", False)  # then other --frames are another run
    monkeypatch.setattr(runner, "execute", lambda *_: (done, False))
    main(command(finished))
    assert (
        f"already finished at {UPDATES * BATCH:,} frames (--force starts over): "
        in capsys.readouterr().out
    )
    assert contents(finished) == before


def test_force_starts_over_and_ends_the_same(trained, finished):
    (folder(finished).path / "curves.csv").write_text("nonsense\n")
    (folder(finished).path / "run.json").write_text('{"finished": true, "update": 99}')
    main(command(finished, UPDATES, "--force"))
    assert same_end(folder(finished), RunFolder(trained))
    assert folder(finished).record().update == UPDATES


def test_an_extended_run_equals_a_long_one(trained, tmp_path):
    main(command(tmp_path, SHORT))
    short = folder(tmp_path).curves()
    assert folder(tmp_path).record().finished and short["update"].max() == SHORT
    main(command(tmp_path))
    assert folder(tmp_path).path.name == trained.name
    assert same_end(folder(tmp_path), RunFolder(trained))
    provenance = folder(tmp_path).record().provenance
    lengths = [
        f"--frames {updates * BATCH} " in command
        for command, updates in zip(provenance["commands"], (SHORT, UPDATES), strict=True)
    ]
    assert all(lengths) and provenance["command"] == provenance["commands"][-1]


def test_a_run_with_more_frames_than_wanted_is_left_alone(finished):
    before = contents(finished)
    assert not runner.execute(tiny(frames=BATCH), finished, show=False)[1]
    assert contents(finished) == before


def test_a_run_killed_before_its_first_checkpoint_starts_over(trained, finished):
    run = folder(finished)
    shutil.rmtree(run.path / "checkpoints")
    run.write_record(replace(run.record(), finished=False, update=0))
    assert runner.execute(tiny(), finished, show=False)[1]
    assert same_end(run, RunFolder(trained))


def flip_a_bit(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 4
    path.write_bytes(data)


ALTERATIONS = {
    "damaged checkpoint": lambda run: flip_a_bit(run.path / f"checkpoints/{SHORT}.safetensors", -9),
    "damaged curves": lambda run: flip_a_bit(run.path / "curves.csv", 300),
    "deleted rows": lambda run: run.write_curves("update,rate\n0,0.001\n"),
    "no curves": lambda run: (run.path / "curves.csv").unlink(),
    "damaged record": lambda run: flip_a_bit(run.path / "run.json", 300),
    "record of another update": lambda run: run.write_record(
        replace(run.record(), update=2, stopped={"rate=0.001": 1}, seconds=-1.0)
    ),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_a_run_continues_from_what_its_checkpoints_say(trained, tmp_path, capsys, name):
    runner.execute(tiny(frames=SHORT * BATCH), tmp_path, save_every=0, show=False)
    run = folder(tmp_path)
    assert run.saved_updates() == [SHORT - 1, SHORT]
    ALTERATIONS[name](run)
    runner.execute(tiny(), tmp_path, show="lines")
    assert same_end(run, RunFolder(trained)) and run.record().stopped == {}
    warned = f"using the one of update {SHORT - 1}" in capsys.readouterr().out
    assert warned == (name == "damaged checkpoint")


def test_rows_after_the_last_checkpoint_are_dropped_when_a_run_continues(trained, tmp_path):
    main(command(tmp_path, SHORT))
    run = folder(tmp_path)
    rows = run.curves().to_dict("records")
    later = [row | {"update": SHORT + 1} for row in rows[-4:]]
    run.write_curves(format_curves(rows + later))
    main(command(tmp_path))
    assert same_end(run, RunFolder(trained))
