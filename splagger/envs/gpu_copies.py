"""Copies between an NVIDIA GPU and page-locked host memory, by the functions of CUDA's driver."""

import contextlib
import ctypes
import functools as ft
import math
from collections.abc import Sequence
from ctypes import c_char, c_size_t, c_uint, c_void_p
from typing import Any

import numpy as np


@ft.cache
def driver() -> Any:
    """Loads CUDA's driver; returns None on computers without it."""
    with contextlib.suppress(OSError):
        return ctypes.CDLL("libcuda.so.1")
    return None


def view_of(address: int | None, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Returns an array whose numbers are at this address of the host's memory."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if address is None or not size:
        return np.zeros(shape, dtype)
    memory: Any = (c_char * size).from_address(address)
    return np.frombuffer(memory, dtype).reshape(shape)


class Copies:
    """Copies in one stream of a GPU."""

    def __init__(self, stream: int):
        self.stream, self.context = c_void_p(stream), c_void_p()
        self.arrays: dict[tuple, tuple[int, np.ndarray]] = {}
        self._call("cuStreamGetCtx", self.stream, ctypes.byref(self.context))

    @staticmethod
    @ft.cache
    def of(stream: int) -> "Copies":
        """Returns the copies of a stream; they are created once."""
        return Copies(stream)

    @contextlib.contextmanager
    def active(self):
        """Makes the stream's context current: copies and allocations need that."""
        self._call("cuCtxPushCurrent_v2", self.context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(c_void_p()))

    def array(self, use: tuple, dtype: Any, shape: tuple[int, ...]) -> tuple[int, np.ndarray]:
        """Returns the address and a view of page-locked memory for this use; it is allocated once."""
        if (use, dtype, shape) not in self.arrays:
            size, address = math.prod(shape) * np.dtype(dtype).itemsize, c_void_p()
            self._call("cuMemHostAlloc", ctypes.byref(address), c_size_t(max(size, 1)), c_uint(0))
            place = address.value or 0
            self.arrays[use, dtype, shape] = place, view_of(place, dtype, shape)
        return self.arrays[use, dtype, shape]

    def to_host(self, copies: Sequence[tuple[int, tuple[int, np.ndarray]]]) -> None:
        """Copies from each device address to an array of `array`, and waits for all of them."""
        for source, (target, view) in copies:
            if view.size:
                places = c_void_p(target), c_void_p(source), c_size_t(view.nbytes)
                self._call("cuMemcpyDtoHAsync_v2", *places, self.stream)
        self._call("cuStreamSynchronize", self.stream)

    def to_device(self, target: int, source: tuple[int, np.ndarray]) -> None:
        """Copies an array of `array` to a device address. The stream's next operation sees it."""
        place, view = source
        places = c_void_p(target), c_void_p(place), c_size_t(view.nbytes)
        self._call("cuMemcpyHtoDAsync_v2", *places, self.stream)

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(driver(), name)(*args)
        if status:
            raise RuntimeError(f"{name} failed with CUDA's error {status}")
