"""Agent files: one agent as a .npz file of arrays and a description, without code. Needs no JAX.

A file ends with the SHA-256 digest of all its other bytes, in the comment of the archive, where other readers of .npz
files ignore it. Nothing in a file is believed: sizes are compared with the file's own length before memory is
allocated, and no Python object is ever unpickled. Arrays are not compressed: those of a trained agent hold random
numbers, and a file without compression cannot unpack to more than its length. Numbers in half precision are read as
float32.
"""

import contextlib
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splagger.errors import RunError, SettingError, one_line
from splagger.files.storage import atomic_file, sha256, writing

# Files of format 1 are compressed and have neither a format nor a digest nor an interface.
FORMAT = 2
DESCRIPTION = "description"  # the entry that is not an array of the agent
_LABEL = b"splagger sha256 "  # precedes the digest in the comment of the archive
_DIGITS = 64
_RATIO = 256  # a file of format 1 unpacks to less; untrained agents have many zeros
_LONGEST = 10_000_000  # bytes of a description


class Header(NamedTuple):
    """The shape and type of an array that was not read yet."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool = False  # the first index varies fastest

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def widened(self) -> "Header":
        """Returns the header of the array as it is read: float32 instead of float16."""
        return self._replace(dtype=np.dtype(np.float32)) if self.dtype == np.float16 else self


class AgentFile(NamedTuple):
    """The description of an agent, the headers of its arrays, and a function that reads and verifies them."""

    description: dict[str, Any]
    headers: dict[str, Header]
    arrays: Callable[[], dict[str, np.ndarray]]


def in_half_precision(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns float32 arrays as float16, except those with a number that float16 cannot hold."""
    largest = np.finfo(np.float16).max
    fits = {
        n: a.dtype == np.float32 and np.abs(a).max(initial=0) <= largest for n, a in arrays.items()
    }
    return {n: a.astype(np.float16) if fits[n] else a for n, a in arrays.items()}


def write_agent(path: Path, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]):
    """Writes an agent file atomically; adds the format to the description, and the digest to the file."""
    if path.suffix != ".npz":
        raise SettingError(f"the name of an agent file must end with .npz, got {path}")
    text = json.dumps({"format": FORMAT} | dict(description))
    buffer = io.BytesIO()
    np.savez(buffer, **{DESCRIPTION: np.asarray(text)}, **arrays)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = _LABEL + bytes(_DIGITS)
    content = buffer.getvalue()[:-_DIGITS]
    with writing(path), atomic_file(path) as handle:
        handle.write(content + sha256(content).encode())


@contextlib.contextmanager
def open_agent(path: Path) -> Iterator[AgentFile]:
    """Opens an agent file; raises a RunError in one line for everything that `write_agent` would not write."""
    with _damage(path):
        content = _read(path)
        archive = zipfile.ZipFile(io.BytesIO(content))
    with archive:
        with _damage(path):
            _check_sizes(archive, len(content), _RATIO)
            headers = {_name(info): _header(archive, info) for info in archive.infolist()}
            description = _parse(_text(archive, headers.pop(DESCRIPTION, None)))
        _check_format(path, description)

        def arrays() -> dict[str, np.ndarray]:
            with _damage(path):
                if description.get("format", 1) > 1:
                    _check_sizes(archive, len(content), ratio=1)
                _verify(content, archive.comment, description)
                return {name: _array(archive, name, header) for name, header in headers.items()}

        widened = {name: header.widened() for name, header in headers.items()}
        yield AgentFile(description, widened, arrays)


@contextlib.contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turns any error of the libraries that parse a file into a RunError: they raise many kinds."""
    try:
        yield
    except FileNotFoundError:
        raise RunError(f"there is no agent file {path}") from None
    except IsADirectoryError:
        raise RunError(
            f"{path} is a folder, not an agent file; `splagger export` writes the agent of a run folder to a file"
        ) from None
    except Exception as error:
        raise RunError(
            f"{path} is not an agent that splagger wrote, or is damaged ({one_line(error)})"
        ) from error


def _read(path: Path) -> bytes:
    """Returns the content of a file that begins like an archive; other files may be large and are not read."""
    with open(path, "rb") as handle:
        begin = handle.read(4)
        if begin != b"PK\x03\x04":
            raise ValueError("it is not an archive")
        return begin + handle.read()


def _check_sizes(archive: zipfile.ZipFile, size: int, ratio: int) -> None:
    """Raises a ValueError if the entries have more bytes than `ratio` times the file, or equal names."""
    names = [info.filename for info in archive.infolist()]
    if len(set(names)) < len(names):
        raise ValueError("two of its entries have the same name")
    declared = sum(info.file_size for info in archive.infolist())
    if declared > ratio * size:
        raise ValueError(f"it declares {declared:,} bytes, which a file of {size:,} cannot hold")


def _name(info: zipfile.ZipInfo) -> str:
    if not info.filename.endswith(".npy"):
        raise ValueError(f"its entry {info.filename!r:.80} is not an array")
    return info.filename.removesuffix(".npy")


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Header:
    with archive.open(info) as member:
        header, length = _read_header(member)
    if header.nbytes + length != info.file_size:
        shape = f"{header.dtype}{list(header.shape)}"
        raise ValueError(f"{_name(info)!r:.80} says {shape} but has {info.file_size:,} bytes")
    return header


def _read_header(member: Any) -> tuple[Header, int]:
    """Returns the header at the beginning of an array's bytes, and its length."""
    major, minor = np.lib.format.read_magic(member)
    if (major, minor) == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
    elif (major, minor) == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(member)
    else:
        raise ValueError(f"an array has version {major}.{minor}")
    if dtype.hasobject or dtype.names or dtype.subdtype or min(shape, default=0) < 0:
        raise ValueError(f"an array has type {dtype}")
    return Header(tuple(shape), dtype, fortran), member.tell()


def _array(archive: zipfile.ZipFile, name: str, header: Header) -> np.ndarray:
    with archive.open(f"{name}.npy") as member:
        again, _ = _read_header(member)
        data = member.read()  # to the end, where the archive's own checksum is compared
    if again != header or len(data) != header.nbytes:
        raise ValueError(f"{name!r:.80} is truncated")
    flat = np.frombuffer(data, header.dtype).astype(header.widened().dtype, copy=False)
    return flat.reshape(header.shape[::-1]).T if header.fortran else flat.reshape(header.shape)


def _text(archive: zipfile.ZipFile, header: Header | None) -> str:
    if header is None or header.shape != () or header.dtype.kind != "U":
        raise ValueError("it has no description")
    if header.nbytes > _LONGEST:
        raise ValueError(f"its description has {header.nbytes:,} bytes")
    return str(_array(archive, DESCRIPTION, header))


def _parse(text: str) -> dict[str, Any]:
    description = json.loads(text)
    if not isinstance(description, dict):
        raise ValueError("its description is not a JSON object")
    return description


def _check_format(path: Path, description: dict[str, Any]) -> None:
    version = description.get("format", 1)
    if type(version) is not int or version < 1:
        raise RunError(f"{path} is damaged (its format is {version!r:.80})")
    if version > FORMAT:
        raise RunError(
            f"{path} has format {version}, newer than this version of splagger reads (up to {FORMAT}); "
            "update splagger"
        )


def _verify(content: bytes, comment: bytes, description: dict[str, Any]) -> None:
    """Raises a ValueError unless the file ends with its own digest; files of format 1 need not have one."""
    if not comment.startswith(_LABEL):
        if description.get("format", 1) > 1:
            raise ValueError("it was changed after splagger wrote it: it has no digest")
    elif content[-_DIGITS:] != sha256(content[:-_DIGITS]).encode():
        raise ValueError("it was changed after splagger wrote it: its digest is another one")
