"""TensorBoard's event files: records of protocol buffers, each with two checksums.

A record is: length (8 bytes), checksum of the length, message, checksum of the message. Every record is written at
once, so a process that is killed leaves at most one incomplete record, which TensorBoard ignores.
"""

import os
import platform
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_VERSION = b"brain.Event:2"
_SESSION_START = b"\x08\x01"  # SessionLog(status=START)


class EventFile:
    """Appends scalars to a new event file in a folder.

    `first_step`: TensorBoard discards events of earlier files in the folder from this step on; None keeps all.
    """

    def __init__(self, folder: Path, first_step: int | None = None):
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time_ns()
        name = f"events.out.tfevents.{now // 10**9}.{platform.node()}.{os.getpid()}.{now % 10**9}"
        self.path = folder / name
        self._write(0, _field(3, _VERSION))
        if first_step is not None:
            self._write(first_step, _field(7, _SESSION_START))

    def add(self, step: int, scalars: Mapping[str, float]) -> None:
        """Writes the values of one step."""
        values = [
            _field(1, _field(1, name.encode()) + b"\x15" + struct.pack("<f", value))
            for name, value in scalars.items()
        ]
        self._write(step, _field(5, b"".join(values)))

    def _write(self, step: int, content: bytes) -> None:
        """Appends an Event: wall time, step, and one of file version, summary and session log."""
        event = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + content
        length = struct.pack("<Q", len(event))
        # Opened for each record: a run of a thousand members would hold more files than most systems allow.
        with open(self.path, "ab", buffering=0) as file:
            file.write(length + _checksum(length) + event + _checksum(event))


class EventFiles:
    """Curves as event files, in one subfolder per member of a grid.

    `frames` is the number of frames at which training continues: events after it are discarded.
    """

    def __init__(self, folder: Path, points: Sequence[Any], frames: int):
        names = [f"rate{p.rate:g}-seed{p.seed}" for p in points]
        if len(set(names)) < len(names):
            names = [f"{i:03d}-{name}" for i, name in enumerate(names)]
        first = frames + 1 if frames else None
        self.files = {
            point: EventFile(folder / name, first)
            for point, name in zip(points, names, strict=True)
        }

    def add(self, point: Any, row: dict[str, Any]) -> None:
        """Writes one evaluation of a member."""
        skipped = (*point._fields, "update", "frames")
        self.files[point].add(row["frames"], {k: v for k, v in row.items() if k not in skipped})


def _field(number: int, content: bytes) -> bytes:
    """A field of a protocol buffer that holds bytes or another message."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """An integer in groups of seven bits, the lowest first.

    >>> _varint(300)
    b'\\xac\\x02'
    """
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def _table() -> list[int]:
    """CRC-32C of every byte, by its polynomial with the bits reversed."""
    found = list(range(256))
    for _ in range(8):
        found = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in found]
    return found


_CRC = _table()


def _crc32c(data: bytes) -> int:
    """
    >>> hex(_crc32c(b"123456789"))
    '0xe3069283'
    """
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _CRC[(value ^ byte) & 255]
    return value ^ 0xFFFFFFFF


def _checksum(data: bytes) -> bytes:
    """CRC-32C, rotated and shifted as TensorBoard wants it."""
    value = _crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)
