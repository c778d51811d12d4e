"""Agent files: every byte is verified, nothing large is allocated for a small file, and every damage is one line."""

import io
import json
import random
import tracemalloc
import zipfile

import numpy as np
import pytest

from splagger.errors import RunError, SettingError
from splagger.files.agent_file import FORMAT, in_half_precision, open_agent, write_agent

ARRAYS = {
    "0.weight": np.random.default_rng(0).normal(size=(9, 8)).astype(np.float32),
    "0.bias": np.zeros(9, np.float32),
    "1.count": np.float32(3.0).reshape(()),
    "1.transposed": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
}


@pytest.fixture
def path(tmp_path):
    write_agent(tmp_path / "agent.npz", {"name": "α"}, ARRAYS)
    return tmp_path / "agent.npz"


def read(path):
    with open_agent(path) as file:
        return file.description, file.arrays()


def saved(path, **arrays):
    np.savez_compressed(path, **arrays)
    return path


def npy(shape, dtype="<f4", data=b"", fortran=False) -> bytes:
    """The bytes of an array whose header may lie."""
    buffer = io.BytesIO()
    header = {"descr": dtype, "fortran_order": fortran, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + data


def archive(path, *entries: tuple[str, bytes]):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, data in entries:
            zipped.writestr(name, data)
    return path


def description(**values) -> tuple[str, bytes]:
    text = np.asarray(json.dumps(values))
    return "description.npy", npy((), text.dtype.str, text.tobytes())


def test_what_was_written_is_read(path):
    about, arrays = read(path)
    assert about == {"format": FORMAT, "name": "α"} and arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)
    with np.load(path, allow_pickle=False) as others:  # other tools read it too
        np.testing.assert_array_equal(others["0.weight"], ARRAYS["0.weight"])


def test_headers_are_known_before_the_arrays_are_read(path):
    with open_agent(path) as file:
        assert {name: (h.shape, h.dtype) for name, h in file.headers.items()} == {
            name: (array.shape, array.dtype) for name, array in ARRAYS.items()
        }


def test_every_flipped_bit_is_found(path):
    whole, draw = path.read_bytes(), random.Random(0)
    for index in draw.sample(range(8 * len(whole)), 200):
        damaged = bytearray(whole)
        damaged[index // 8] ^= 1 << index % 8
        path.write_bytes(damaged)
        with pytest.raises(RunError, match="is not an agent that splagger wrote, or is damaged"):
            read(path)


def test_every_truncation_and_insertion_is_found(path):
    whole, draw = path.read_bytes(), random.Random(1)
    for at in draw.sample(range(len(whole)), 30):
        for damaged in (whole[:at], whole[:at] + b"\0" + whole[at:], whole[at:]):
            path.write_bytes(damaged)
            if damaged != whole:
                with pytest.raises(RunError):
                    read(path)


def test_files_of_the_first_format_need_no_digest(tmp_path):
    old = saved(tmp_path / "old.npz", description=np.asarray("{}"), x=np.ones(2))
    assert read(old)[0] == {} and read(old)[1]["x"].tolist() == [1, 1]


def test_a_file_that_was_written_again_has_no_digest(path):
    with np.load(path) as arrays:
        again = saved(path.with_name("again.npz"), **dict(arrays))
    with pytest.raises(RunError, match="changed after splagger wrote it: it has no digest"):
        read(again)


ONE = ("x.npy", npy((2,), data=bytes(8)))
LIES = {
    "text": (b"nothing", "it is not an archive"),
    "nothing": (b"", "it is not an archive"),
    "array": (npy((2,), data=bytes(8)), "it is not an archive"),
    "pickle": (b"\x80\x04cos\nsystem\n.", "it is not an archive"),
    "no description": ([ONE], "it has no description"),
    "not an array": ([description(), ("x.txt", b"x")], "entry 'x.txt' is not an array"),
    "path": ([description(), ("../x.npy", ONE[1])], None),
    "huge": ([description(), ("x.npy", npy((10**12,)))], "'x' says float32"),
    "huge number": ([description(), ("x.npy", npy((10**30, 10**30)))], "'x' says float32"),
    "negative": ([description(), ("x.npy", npy((-2,), data=bytes(8)))], "damaged"),
    "short": ([description(), ("x.npy", npy((3,), data=bytes(8)))], "'x' says float32"),
    "long": ([description(), ("x.npy", npy((1,), data=bytes(8)))], "'x' says float32"),
    "objects": ([description(), ("x.npy", npy((1,), "|O", b"\x80\x04N."))], "has type object"),
    "records": (
        [description(), ("x.npy", npy((1,), [("a", "<f4")], bytes(4)))],
        "an array has type",
    ),
    "version": ([description(), ("x.npy", b"\x93NUMPY\x09\x00")], "version"),
    "magic": ([description(), ("x.npy", b"\x93NUMBY\x01\x00")], "magic"),
    "description of numbers": ([("description.npy", ONE[1])], "it has no description"),
    "list": ([("description.npy", npy((), "<U2", "[]".encode("utf-32-le")))], "not a JSON object"),
    "no JSON": ([("description.npy", npy((), "<U1", "{".encode("utf-32-le")))], "damaged"),
    "newer": ([description(format=FORMAT + 1)], "has format 3, newer than this version"),
    "format of text": ([description(format="2")], "its format is '2'"),
    "no format": ([description(format=True)], "its format is True"),
    "no digest": ([description(format=2), ONE], "it has no digest"),
}


@pytest.mark.parametrize("kind", LIES)
def test_files_that_lie_are_refused_in_one_line(kind, tmp_path):
    content, message = LIES[kind]
    path = tmp_path / "x.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        archive(path, *content)
    if message is None:
        assert list(read(path)[1]) == ["../x"] and not (tmp_path.parent / "x").exists()
        return
    with pytest.raises(RunError) as error:
        read(path)
    assert message in str(error.value) and str(error.value).isprintable()


def test_deep_descriptions_are_refused(tmp_path):
    text = np.asarray("[" * 50_000)
    with pytest.raises(RunError, match="is damaged"):
        read(saved(tmp_path / "x.npz", description=text))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_with_one_name_are_refused(tmp_path):
    with pytest.raises(RunError, match="two of its entries have the same name"):
        read(archive(tmp_path / "x.npz", description(), ONE, ONE))


SIZE = 30_000_000
ZEROS = npy((SIZE,), "|u1", bytes(SIZE))
SOME = np.random.default_rng(0).bytes(600_000)  # makes the file longer, so that the ratio is small
BOMBS = {
    "first format": ([description(), ("x.npy", ZEROS)], "it declares 30,"),
    "second format": (
        [description(format=2), ("x.npy", ZEROS), ("y.npy", npy((len(SOME),), "|u1", SOME))],
        "it declares 30,",
    ),
    "description": (
        [("description.npy", npy((), f"<U{SIZE // 4}", bytes(SIZE))), ("y.npy", SOME)],
        "damaged",
    ),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_small_file_cannot_allocate_much(kind, tmp_path):
    """Bombs: 30 MB of zeros in 30 kB, with an honest header."""
    entries, message = BOMBS[kind]
    path = archive(tmp_path / "x.npz", *entries)
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    with pytest.raises(RunError, match=message):
        read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


def test_only_npz_files_are_written(tmp_path):
    with pytest.raises(SettingError, match=r"must end with \.npz, got .*agent\.pt"):
        write_agent(tmp_path / "agent.pt", {}, {})
    with pytest.raises(RunError, match=r"cannot write .*nowhere"):
        write_agent(tmp_path / "nowhere" / "agent.npz", {}, {})
    with pytest.raises(RunError, match=r"there is no agent file .*none\.npz"):
        read(tmp_path / "none.npz")


def test_half_precision_is_read_as_float32(tmp_path):
    halves = in_half_precision(ARRAYS | {"0.large": np.float32([1.0, 7e4])})
    kinds = {name: array.dtype for name, array in halves.items()}
    assert kinds["0.weight"] == np.float16 and kinds["0.large"] == np.float32
    assert kinds["1.transposed"] == np.int32
    path = tmp_path / "half.npz"
    write_agent(path, {}, halves)
    _, arrays = read(path)
    assert arrays["0.weight"].dtype == np.float32
    rounded = ARRAYS["0.weight"].astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(arrays["0.weight"], rounded, strict=True)
    with open_agent(path) as file:
        assert file.headers["0.weight"].dtype == np.float32
