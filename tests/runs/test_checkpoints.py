"""Checkpoints: restored bit by bit, written whole or not at all, and damage is reported."""

import contextlib
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.errors import RunError
from splagger.runs.checkpoints import restore_checkpoint, save_checkpoint
from splagger.runs.folder import RunFolder
from tests.tiny import UPDATES, bits, contents, example

(OLD,) = (Path(__file__).parents[1] / "contract/run").glob("*/*/*/checkpoints/4")


def test_a_training_state_is_restored_bit_by_bit(trained, tmp_path):
    update, state, *_ = restore_checkpoint(RunFolder(trained), example())
    assert update == UPDATES and state.update.tolist() == [UPDATES] * 4
    save_checkpoint(RunFolder(tmp_path), 3, state)
    update, again, *_ = restore_checkpoint(RunFolder(tmp_path), example())
    assert update == 3
    assert jax.tree.structure(again) == jax.tree.structure(state)
    assert bits(again) == bits(state)


def test_keys_empty_arrays_and_odd_numbers_are_restored_bit_by_bit(tmp_path):
    numbers = jnp.array([jnp.nan, -0.0, jnp.inf, 1e-42])
    state = {"keys": jr.split(jr.key(3), 4), "empty": jnp.zeros((4, 0)), "numbers": numbers}
    state |= {"flags": jnp.array([True, False]), "nested": (jnp.arange(3), [jnp.zeros(())])}
    save_checkpoint(RunFolder(tmp_path), 0, state)
    update, again, *_ = restore_checkpoint(RunFolder(tmp_path), jax.eval_shape(lambda: state))
    assert update == 0
    assert bits(again) == bits(state)
    assert jr.uniform(again["keys"][1]) == jr.uniform(state["keys"][1])


def test_the_newest_two_checkpoints_are_kept(tmp_path):
    folder = RunFolder(tmp_path)
    for update, kept in ((2, [2]), (9, [2, 9]), (10, [9, 10])):
        save_checkpoint(folder, update, {"x": jnp.full(3, update)})
        assert folder.saved_updates() == kept
    restored = restore_checkpoint(folder, {"x": jnp.zeros(3, jnp.int32)})
    assert restored[1]["x"].tolist() == [10] * 3


def test_a_failed_save_leaves_the_checkpoint_of_the_same_update(tmp_path):
    folder, good = RunFolder(tmp_path), {"x": jnp.ones(3)}
    save_checkpoint(folder, 4, good)
    with contextlib.suppress(Exception):
        save_checkpoint(folder, 4, {"x": np.array([object()])})
    assert folder.saved_updates() == [4]
    assert bits(restore_checkpoint(folder, good)[1]) == bits(good)


def test_leftovers_of_a_killed_save_are_ignored_and_later_removed(copied):
    folder = copied.path / "checkpoints"
    (folder / ".99.safetensors.7.tmp").write_bytes(b"half")
    shutil.copytree(OLD, folder / "99.orbax-checkpoint-tmp")
    update, state, *_ = restore_checkpoint(copied, example())
    assert update == UPDATES
    save_checkpoint(copied, UPDATES + 1, state)
    kept = {f"{update}.safetensors" for update in (UPDATES, UPDATES + 1)}
    assert {path.name for path in folder.iterdir()} == kept


def test_a_folder_may_have_no_checkpoint(tmp_path):
    assert RunFolder(tmp_path).saved_updates() == []
    assert restore_checkpoint(RunFolder(tmp_path), {"x": jnp.zeros(3)}) is None


DAMAGES = {
    "truncated": lambda data: data[: len(data) // 2],
    "shifted": lambda data: b"?" + data,
    "longer": lambda data: data + b"?",
    "empty": lambda data: b"",
    "a bit in the header": lambda data: flipped(data, 99),
    "a bit in the data": lambda data: flipped(data, len(data) - 1),
}


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 16]) + data[position + 1 :]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_reported_and_kept(tmp_path, damage):
    folder, state = RunFolder(tmp_path), {"x": jr.normal(jr.key(0), (4, 100))}
    save_checkpoint(folder, 4, state)
    path = tmp_path / "checkpoints/4.safetensors"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    before = contents(tmp_path)
    message = r"no checkpoint in .*checkpoints can be read .*damaged.*--force starts the run over"
    with pytest.raises(RunError, match=message):
        restore_checkpoint(folder, state)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_checkpoint_before_a_damaged_one_is_used_and_named(tmp_path, capsys, damage):
    folder = RunFolder(tmp_path)
    for update in (3, 4):
        save_checkpoint(folder, update, {"x": jnp.full(5, update)})
    path = tmp_path / "checkpoints/4.safetensors"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    update, state, *_ = restore_checkpoint(folder, {"x": jnp.zeros(5, jnp.int32)})
    assert update == 3 and state["x"].tolist() == [3] * 5
    err = capsys.readouterr().err
    assert "damaged" in err and "using the one of update 3" in err and len(err.splitlines()) == 1


def test_a_damaged_checkpoint_of_an_older_version_is_reported(tmp_path):
    shutil.copytree(OLD, tmp_path / "checkpoints/4")
    (tmp_path / "checkpoints/4/manifest.ocdbt").write_bytes(b"?")
    with pytest.raises(RunError, match=r"no checkpoint in .* can be read"):
        restore_checkpoint(RunFolder(tmp_path), {"x": jnp.ones(2)})


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
    assert files and not [name for name, data in files.items() if data[:2] == b"\x80\x04"]
    assert not [name for name in files if name.endswith((".pkl", ".pickle"))]
