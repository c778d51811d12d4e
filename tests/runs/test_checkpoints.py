"""Checkpoints: restored bit by bit, written whole or not at all, and damage is reported."""

import contextlib
import shutil

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.errors import RunError
from splagger.runs.checkpoints import restore_checkpoint, save_checkpoint, saved_updates
from splagger.runs.folder import RunFolder
from tests.tiny import UPDATES, bits, contents, example


def test_a_training_state_is_restored_bit_by_bit(trained, tmp_path):
    update, state = restore_checkpoint(RunFolder(trained), example())
    assert update == UPDATES and state.update.tolist() == [UPDATES] * 4
    save_checkpoint(RunFolder(tmp_path), 3, state)
    update, again = restore_checkpoint(RunFolder(tmp_path), example())
    assert update == 3
    assert jax.tree.structure(again) == jax.tree.structure(state)
    assert bits(again) == bits(state)


def test_keys_empty_arrays_and_odd_numbers_are_restored_bit_by_bit(tmp_path):
    numbers = jnp.array([jnp.nan, -0.0, jnp.inf, 1e-42])
    state = {"keys": jr.split(jr.key(3), 4), "empty": jnp.zeros((4, 0)), "numbers": numbers}
    state |= {"flags": jnp.array([True, False]), "nested": (jnp.arange(3), [jnp.zeros(())])}
    save_checkpoint(RunFolder(tmp_path), 0, state)
    update, again = restore_checkpoint(RunFolder(tmp_path), jax.eval_shape(lambda: state))
    assert update == 0
    assert bits(again) == bits(state)
    assert jr.uniform(again["keys"][1]) == jr.uniform(state["keys"][1])


def test_only_the_newest_checkpoint_is_kept(tmp_path):
    folder = RunFolder(tmp_path)
    for update in (2, 9, 10):
        save_checkpoint(folder, update, {"x": jnp.full(3, update)})
        assert saved_updates(folder) == [update]
    restored = restore_checkpoint(folder, {"x": jnp.zeros(3, jnp.int32)})
    assert restored[1]["x"].tolist() == [10] * 3


def test_a_failed_save_leaves_the_checkpoint_of_the_same_update(tmp_path):
    folder, good = RunFolder(tmp_path), {"x": jnp.ones(3)}
    save_checkpoint(folder, 4, good)
    with contextlib.suppress(Exception):
        save_checkpoint(folder, 4, {"x": np.array([object()])})
    assert saved_updates(folder) == [4]
    assert bits(restore_checkpoint(folder, good)[1]) == bits(good)


def test_leftovers_of_a_killed_save_are_ignored_and_later_removed(copied):
    folder = copied.path / "checkpoints"
    half = folder / f"{UPDATES + 1}.orbax-checkpoint-tmp"
    shutil.copytree(folder / str(UPDATES), half)
    (half / "_METADATA").unlink()
    update, state = restore_checkpoint(copied, example())
    assert update == UPDATES
    save_checkpoint(copied, UPDATES + 1, state)
    assert [path.name for path in folder.iterdir()] == [str(UPDATES + 1)]


def test_a_folder_may_have_no_checkpoint(tmp_path):
    assert saved_updates(RunFolder(tmp_path)) == []
    assert restore_checkpoint(RunFolder(tmp_path), {"x": jnp.zeros(3)}) is None


DAMAGES = {"truncated": lambda data: data[: len(data) // 2], "garbled": lambda data: b"?" + data}
FILES = ("_METADATA", "manifest.ocdbt", "d/*", "ocdbt.process_0/d/*")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_reported_and_kept(tmp_path, name, damage):
    folder, state = RunFolder(tmp_path), {"x": jr.normal(jr.key(0), (4, 100))}
    save_checkpoint(folder, 4, state)
    for file in (tmp_path / "checkpoints/4").glob(name):
        file.write_bytes(DAMAGES[damage](file.read_bytes()))
    before = contents(tmp_path)
    message = r"checkpoints/4 cannot be read .*damaged.*--force starts the run over"
    with pytest.raises(RunError, match=message):
        restore_checkpoint(folder, state)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("foreign", [{"x": jnp.ones(3)}, {"y": jnp.ones(2)}], ids=["shape", "name"])
def test_a_checkpoint_of_another_model_is_reported_and_kept(tmp_path, foreign):
    folder = RunFolder(tmp_path)
    save_checkpoint(folder, 4, {"x": jnp.ones(2)})
    before = contents(tmp_path)
    with pytest.raises(RunError, match=r"another version.*--force starts the run over"):
        restore_checkpoint(folder, foreign)
    assert contents(tmp_path) == before


def test_checkpoints_contain_no_pickles(trained):
    files = contents(trained / "checkpoints")
    assert files and not [name for name, data in files.items() if data[:1] == b"\x80"]
    assert not [name for name in files if name.endswith((".pkl", ".pickle"))]
