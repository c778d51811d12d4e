"""The run folder: writes are whole or not at all, one process at a time, and damage is told, not hidden."""

import contextlib
import os
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.errors import RunError
from splagger.runs import folder as records
from splagger.runs.folder import RunFolder, find, write_atomically
from tests.tiny import UPDATES, bits, contents, example


@pytest.fixture
def copied(trained, tmp_path) -> RunFolder:
    """A finished run that may be damaged."""
    return RunFolder(shutil.copytree(trained, tmp_path / "run"))


def test_a_crash_before_the_replacement_leaves_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new")
    assert contents(tmp_path) == {"file": b"old"}


def test_a_write_replaces_the_whole_content(tmp_path):
    write_atomically(tmp_path / "file", "a longer text")
    write_atomically(tmp_path / "file", "new")
    assert contents(tmp_path) == {"file": b"new"}


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


def test_descriptions_and_curves_are_read_as_they_were_written(tmp_path):
    folder, rows = RunFolder(tmp_path), [{"update": 3, "rate": 1e-05, "return": 2.0, "x": 0.1}]
    folder.write({"a": [1, 2.5, None]})
    folder.write_curves(rows)
    assert folder.exists and folder.read() == {"a": [1, 2.5, None]}
    assert [list(map(repr, row.values())) for row in folder.read_curves()] == [
        ["3", "1e-05", "2.0", "0.1"]
    ]


def test_runs_are_found_below_any_folder(trained):
    assert [folder.path for folder in find(trained.parents[2])] == [trained]
    assert find(trained.parents[2] / "nowhere") == []


def test_a_training_state_is_restored_bit_by_bit(trained, tmp_path):
    update, state = RunFolder(trained).restore(example())
    assert update == UPDATES and state.update.tolist() == [UPDATES] * 4
    RunFolder(tmp_path).save(3, state)
    update, again = RunFolder(tmp_path).restore(example())
    assert update == 3
    assert jax.tree.structure(again) == jax.tree.structure(state)
    assert bits(again) == bits(state)


def test_keys_empty_arrays_and_odd_numbers_are_restored_bit_by_bit(tmp_path):
    numbers = jnp.array([jnp.nan, -0.0, jnp.inf, 1e-42])
    state = {"keys": jr.split(jr.key(3), 4), "empty": jnp.zeros((4, 0)), "numbers": numbers}
    state |= {"flags": jnp.array([True, False]), "nested": (jnp.arange(3), [jnp.zeros(())])}
    RunFolder(tmp_path).save(0, state)
    update, again = RunFolder(tmp_path).restore(jax.eval_shape(lambda: state))
    assert update == 0
    assert bits(again) == bits(state)
    assert jr.uniform(again["keys"][1]) == jr.uniform(state["keys"][1])


def test_only_the_newest_checkpoint_is_kept(tmp_path):
    folder = RunFolder(tmp_path)
    for update in (2, 9, 10):
        folder.save(update, {"x": jnp.full(3, update)})
        assert folder.checkpoints() == [update]
    assert folder.restore({"x": jnp.zeros(3, jnp.int32)})[1]["x"].tolist() == [10] * 3


def test_a_failed_save_leaves_the_checkpoint_of_the_same_update(tmp_path):
    folder, good = RunFolder(tmp_path), {"x": jnp.ones(3)}
    folder.save(4, good)
    with contextlib.suppress(Exception):
        folder.save(4, {"x": np.array([object()])})
    assert folder.checkpoints() == [4]
    assert bits(folder.restore(good)[1]) == bits(good)


def test_leftovers_of_a_killed_save_are_ignored_and_later_removed(copied):
    folder = copied.path / "checkpoints"
    half = folder / f"{UPDATES + 1}.orbax-checkpoint-tmp"
    shutil.copytree(folder / str(UPDATES), half)
    (half / "_METADATA").unlink()
    update, state = copied.restore(example())
    assert update == UPDATES
    copied.save(UPDATES + 1, state)
    assert [path.name for path in folder.iterdir()] == [str(UPDATES + 1)]


def test_no_checkpoint_is_no_error(tmp_path):
    assert RunFolder(tmp_path).checkpoints() == []
    assert RunFolder(tmp_path).restore({"x": jnp.zeros(3)}) is None


DAMAGES = {"truncated": lambda data: data[: len(data) // 2], "garbled": lambda data: b"?" + data}
FILES = ("_METADATA", "manifest.ocdbt", "d/*", "ocdbt.process_0/d/*")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_told_and_kept(tmp_path, name, damage):
    folder, state = RunFolder(tmp_path), {"x": jr.normal(jr.key(0), (4, 100))}
    folder.save(4, state)
    for file in (tmp_path / "checkpoints/4").glob(name):
        file.write_bytes(DAMAGES[damage](file.read_bytes()))
    before = contents(tmp_path)
    message = r"checkpoints/4 cannot be read .*damaged.*--force starts the run over"
    with pytest.raises(RunError, match=message):
        folder.restore(state)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("foreign", [{"x": jnp.ones(3)}, {"y": jnp.ones(2)}], ids=["shape", "name"])
def test_a_checkpoint_of_another_model_is_told_and_kept(tmp_path, foreign):
    folder = RunFolder(tmp_path)
    folder.save(4, {"x": jnp.ones(2)})
    before = contents(tmp_path)
    with pytest.raises(RunError, match=r"another version.*--force starts the run over"):
        folder.restore(foreign)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("text", [b'{"run": ', b"", b"\xff\xfe\x00", b"[]"])
def test_a_damaged_description_is_told_and_kept(copied, text):
    (copied.path / records.DESCRIPTION).write_bytes(text)
    before = contents(copied.path)
    with pytest.raises(RunError, match=r"run\.json is damaged .*--force starts over"):
        copied.read()
    assert contents(copied.path) == before


@pytest.mark.parametrize("name", ["nothing", "file/inside"])
def test_a_folder_without_a_description_is_no_run(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="is no run folder"):
        RunFolder(tmp_path / name).read()


def test_checkpoints_contain_no_pickles(trained):
    files = contents(trained / "checkpoints")
    assert files and not [name for name, data in files.items() if data[:1] == b"\x80"]
    assert not [name for name in files if name.endswith((".pkl", ".pickle"))]
