"""Atomic writes, digests, failures of reading and writing as user errors, and messages on any output."""

import contextlib
import hashlib
import io
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from splagger.errors import RunError


def sha256(data: bytes | str) -> str:
    """Returns the SHA-256 digest of some bytes or of a text in UTF-8.

    >>> sha256("abc")[:16]
    'ba7816bf8f01cfea'
    """
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def json_digest(data: dict[str, Any]) -> str:
    """Returns the digest of JSON data; neither the order of the names nor whitespace changes it.

    >>> json_digest({"a": 1, "b": [2]}) == json_digest({"b": [2], "a": 1})
    True
    """
    return sha256(json.dumps(data, sort_keys=True, separators=(",", ":")))


@contextlib.contextmanager
def atomic_file(path: Path, confirm: Callable[[], object] | None = None) -> Iterator[IO[bytes]]:
    """Opens a file to write. It replaces `path` at the end; after a crash, `path` has its old content.

    `confirm` is called just before that; if it raises, `path` is not replaced.
    """
    # Machines that share a folder may have processes with the same id.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "wb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        if confirm is not None:
            confirm()
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, text: str, confirm: Callable[[], object] | None = None) -> None:
    """Replaces the content of a file atomically: after a crash it holds either the old or the new content."""
    with atomic_file(path, confirm) as handle:
        handle.write(text.encode())


def remove_leftovers(folder: Path) -> None:
    """Removes the temporary files of processes that were killed. No other process may be writing to the folder."""
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)


def write_output(path: str | Path, data: bytes | str) -> None:
    """Writes a file that a user asked for. If that fails, a file of that name keeps its content.

    Texts are written in UTF-8; names of folders with other bytes are shown with "?".
    """
    content = data.encode("utf-8", "replace") if isinstance(data, str) else data
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a device or a pipe
        target.write_bytes(content)
        return
    with atomic_file(target) as handle:
        handle.write(content)


def unreadable(path: Path, error: OSError) -> RunError:
    """Returns the error for a file or folder that this user may not read."""
    return RunError(f"cannot read {path} ({error.strerror})")


def print_any_text() -> None:
    """Lets print() replace characters that the output's encoding lacks, and print to nowhere if it is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def warn(text: str) -> None:
    """Prints a warning that the user should see, on stderr."""
    print(f"splagger: {text}", file=sys.stderr)


@contextlib.contextmanager
def writing(path: str | Path, advice: str = "choose another path") -> Iterator[None]:
    """Turns an OSError (no such folder, no permission, a full disk) into a RunError that ends with `advice`."""
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror or error}); {advice}") from error
