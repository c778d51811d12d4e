"""Atomic writes, and failures of writing as user errors."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from splagger.errors import RunError


def write_atomically(path: Path, text: str) -> None:
    """Replaces the content of a file atomically: after a crash it holds either the old or the new content."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: str | Path, advice: str = "choose another path") -> Iterator[None]:
    """Turns an OSError (no such folder, no permission, a full disk) into a RunError that ends with `advice`."""
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror or error}); {advice}") from error
