"""Files of named arrays: every bit is covered by a digest, and no declared size is believed."""

import json
import os

import numpy as np
import pytest

from splagger.files.array_file import TYPES, DamagedFileError, read_arrays, write_arrays

ARRAYS = {
    "a.b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "scalar": np.array(7, np.uint32),
    "flags": np.array([True, False, True]),
    "strided": np.arange(20.0).reshape(4, 5)[:, ::2],
    "naïve": np.array([np.nan, -0.0, np.inf]),
}


def same(one: dict, other: dict) -> bool:
    assert list(one) == list(other)
    kinds = [(a.dtype, a.shape, a.tobytes()) for a in one.values()]
    return kinds == [(a.dtype, a.shape, a.tobytes()) for a in other.values()]


@pytest.fixture
def path(tmp_path):
    write_arrays(tmp_path / "x.safetensors", ARRAYS)
    return tmp_path / "x.safetensors"


def test_arrays_are_read_as_they_were_written(path):
    assert same(read_arrays(path), ARRAYS)
    assert os.listdir(path.parent) == ["x.safetensors"]


def test_arrays_of_every_type_are_stored(tmp_path):
    arrays = {name: np.ones(3, dtype) for name, dtype in TYPES.items()}
    write_arrays(tmp_path / "x", arrays)
    assert same(read_arrays(tmp_path / "x"), arrays)


def test_some_arrays_are_read_alone(path):
    found = read_arrays(path, ["scalar", "nothing"])
    assert same(found, {"scalar": ARRAYS["scalar"]})


def test_the_layout_is_that_of_safetensors(path):
    """Read here by the published definition of the format, without our reader."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0 and all(isinstance(v, str) for v in header["__metadata__"].values())
    entry, body = header["a.b"], data[8 + length :]
    begin, end = entry["data_offsets"]
    found = np.frombuffer(body[begin:end], "<f4").reshape(entry["shape"])
    assert entry["dtype"] == "F32" and (found == ARRAYS["a.b"]).all()


def test_flipped_bits_are_found(path):
    data = path.read_bytes()
    for position in range(0, len(data) * 8, 13):
        changed = bytearray(data)
        changed[position // 8] ^= 1 << position % 8
        path.write_bytes(changed)
        with pytest.raises(DamagedFileError):
            read_arrays(path)


def test_truncations_are_found(path):
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(DamagedFileError):
            read_arrays(path)


def test_a_damaged_array_does_not_hide_the_others(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert same(read_arrays(path, ["a.b"]), {"a.b": ARRAYS["a.b"]})
    with pytest.raises(DamagedFileError, match="naïve"):
        read_arrays(path)


FORGERIES = {
    "huge": {"shape": [10**15], "data_offsets": [0, 4 * 10**15]},
    "negative": {"shape": [-6], "data_offsets": [0, -24]},
    "other size": {"shape": [7], "data_offsets": [0, 24]},
    "type": {"dtype": "O"},
    "text": {"shape": "many"},
}


@pytest.mark.parametrize("name", FORGERIES)
def test_declared_sizes_are_checked_before_memory_is_allocated(tmp_path, monkeypatch, name):
    """A file whose header digest is right but which declares impossible arrays."""
    import splagger.files.array_file as module

    path = tmp_path / "x"
    dumps = json.dumps

    def forged(data):
        if "a.b" in data and isinstance(data["a.b"], dict):
            data = data | {"a.b": data["a.b"] | FORGERIES[name]}
        return dumps(data)

    with monkeypatch.context() as patch:
        patch.setattr(module.json, "dumps", forged)
        write_arrays(path, ARRAYS)
    with pytest.raises(DamagedFileError, match=r"impossible|size"):
        read_arrays(path)


def test_a_type_that_cannot_be_stored_leaves_the_old_file(path):
    with pytest.raises(ValueError, match="x has type object"):
        write_arrays(path, {"x": np.array([object()])})
    assert same(read_arrays(path), ARRAYS) and os.listdir(path.parent) == ["x.safetensors"]
