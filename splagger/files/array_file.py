"""Named arrays in one file, every byte of which is covered by a SHA-256 digest. Needs no JAX.

The layout is that of safetensors, so other tools can read the files: 8 bytes with the length of a JSON header, the
header (name → dtype, shape, offsets), the data. The header's metadata hold one digest per array (of the digests of its
chunks of 8 MiB) and one of the header itself, computed with 64 zeros in its place.
"""

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from splagger.files.storage import atomic_file

TYPES = {
    name: np.dtype(kind)
    for name, kind in (
        *(("BOOL", "?"), ("U8", "u1"), ("U16", "<u2"), ("U32", "<u4"), ("U64", "<u8")),
        *(("I8", "i1"), ("I16", "<i2"), ("I32", "<i4"), ("I64", "<i8")),
        *(("F16", "<f2"), ("F32", "<f4"), ("F64", "<f8"), ("C64", "<c8")),
    )
}
_UNKNOWN = "0" * 64
_MAX_HEADER = 100_000_000
_CHUNK = 1 << 23  # bytes that one thread hashes at a time; part of the format
_THREADS = min(8, os.cpu_count() or 1)


class DamagedFileError(ValueError):
    """A file whose bytes are not those that were written. The message says what is wrong."""


def write_arrays(
    path: Path, arrays: dict[str, np.ndarray], confirm: Callable[[], object] | None = None
) -> None:
    """Writes the arrays atomically: after a crash, the file has either its old or its new content.

    The digests are computed in other threads while the data are written. See `atomic_file` for `confirm`.
    """
    contiguous = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in arrays.items()}
    with atomic_file(path, confirm) as handle, ThreadPoolExecutor(_THREADS) as pool:
        handle.write(_header(contiguous, dict.fromkeys(contiguous, _UNKNOWN)))
        digests = _digests(contiguous, pool)
        for array in contiguous.values():
            handle.write(_bytes(array))
        handle.seek(0)
        handle.write(_header(contiguous, digests()))


def read_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Returns the arrays with these names, by default all; raises a DamagedFileError unless their digests match."""
    with open(path, "rb") as handle, ThreadPoolExecutor(_THREADS) as pool:
        entries, digests, start = _read_header(handle)
        wanted = entries if names is None else {n: entries[n] for n in names if n in entries}
        arrays = {name: _read_array(handle, start, *entry) for name, entry in wanted.items()}
        for name, digest in _digests(arrays, pool)().items():
            if digest != digests[name]:
                raise DamagedFileError(f"the bytes of {name!r} are not those that were written")
    return arrays


def _header(arrays: dict[str, np.ndarray], digests: dict[str, str]) -> bytes:
    names = {dtype: name for name, dtype in TYPES.items()}
    entries: dict[str, Any] = {}
    offset = 0
    for name, array in arrays.items():
        if array.dtype not in names:
            raise ValueError(f"{name} has type {array.dtype}, which cannot be stored")
        end = offset + array.nbytes
        kind, shape = names[array.dtype], list(array.shape)
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [offset, end]}
        offset = end

    def encoded(own: str) -> bytes:
        metadata = {"sha256": own, "digests": json.dumps(digests)}
        text = json.dumps({"__metadata__": metadata} | entries).encode()
        return text + b" " * (-len(text) % 8)

    text = encoded(hashlib.sha256(encoded(_UNKNOWN)).hexdigest())
    return len(text).to_bytes(8, "little") + text


def _read_header(handle: io.BufferedReader) -> tuple[dict[str, tuple], dict[str, str], int]:
    """Returns the entries (dtype, shape, begin, end) by name, the digests, and the position of the data."""
    size = os.fstat(handle.fileno()).st_size
    length = int.from_bytes(handle.read(8), "little")
    if not 2 <= length <= min(size - 8, _MAX_HEADER):
        raise DamagedFileError(f"it is truncated or has another format ({size:,} bytes)")
    text = handle.read(length)
    try:
        header = json.loads(text)
        metadata = header.pop("__metadata__")
        own, digests = metadata["sha256"], json.loads(metadata["digests"])
        if not text.count(own.encode()) == 1:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedFileError("its header cannot be read") from None
    if hashlib.sha256(text.replace(own.encode(), _UNKNOWN.encode())).hexdigest() != own:
        raise DamagedFileError("its header is not the one that was written")
    # From here on, the header is what `write_arrays` wrote, or a forgery: sizes are still checked.
    try:
        entries = {name: _entry(**entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError):
        raise DamagedFileError("its header describes impossible arrays") from None
    if max((end for *_, end in entries.values()), default=0) != size - 8 - length:
        raise DamagedFileError("its size is not the one that was written")
    return entries, digests, 8 + length


def _entry(dtype: str, shape: list[int], data_offsets: list[int]) -> tuple:
    begin, end = data_offsets
    kind, dimensions = TYPES[dtype], tuple(int(n) for n in shape)
    if begin < 0 or min(dimensions, default=0) < 0:
        raise ValueError
    if math.prod(dimensions) * kind.itemsize != end - begin:
        raise ValueError
    return kind, dimensions, begin, end


def _read_array(
    handle: io.BufferedReader,
    start: int,
    kind: np.dtype,
    shape: tuple[int, ...],
    begin: int,
    end: int,
) -> np.ndarray:
    array = np.empty(shape, kind)
    handle.seek(start + begin)
    if handle.readinto(_bytes(array)) != end - begin:
        raise DamagedFileError("it is truncated")
    return array


def _bytes(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))


def _digests(arrays: dict[str, np.ndarray], pool: Executor) -> Callable[[], dict[str, str]]:
    """Starts to compute the digests of all arrays; returns a function that waits for them.

    The digest of an array is that of the digests of its chunks, so that many threads share the work.
    """
    pending = {name: [pool.submit(_sha256, c) for c in _chunks(a)] for name, a in arrays.items()}

    def wait() -> dict[str, str]:
        parts = {name: b"".join(f.result() for f in chunks) for name, chunks in pending.items()}
        return {name: _sha256(part).hex() for name, part in parts.items()}

    return wait


def _sha256(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()


def _chunks(array: np.ndarray) -> list[memoryview]:
    data = _bytes(array)
    return [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
