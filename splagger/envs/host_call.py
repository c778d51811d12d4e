"""NumPy functions in compiled programs: `jax.pure_callback` with less work per call.

JAX makes an array of its own from each argument of a callback. With 240 robots, this takes longer than all of our
own code. Here, XLA calls the function through its C interface, decoded by ctypes. On a CPU, arguments and results
are views of XLA's memory. On an NVIDIA GPU, they are views of page-locked memory, which is allocated once.
"""

import ctypes
import functools as ft
import itertools
import logging
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from splagger.envs.gpu_copies import Copies, driver, view_of

VERSION = 0, 3  # of XLA's interface; later versions only append fields
METADATA, INTERNAL_ERROR = 1, 13
TYPES = {1: np.bool_, 4: np.int32, 8: np.uint32, 11: np.float32}  # by XLA's code
NUMBERS = itertools.count()

Function = Callable[..., tuple[np.ndarray, ...]]


def call_on_host(function: Function, shapes: tuple, *args: Array) -> tuple[Array, ...]:
    """Calls `function` on NumPy arrays; its results have the given shapes and dtypes.

    The function must be hashable and pure. It may not keep its arguments, or call JAX. Vmapped axes are leading axes of
    all arguments and results, so that one call computes the whole batch.
    """
    platform = _platform()
    if platform is None:
        return jax.pure_callback(_on_arrays(function), shapes, *args, vmap_method="broadcast_all")
    target = _register(function, platform)
    results = jax.ffi.ffi_call(target, tuple(shapes), vmap_method="broadcast_all")(*args)
    return tuple(results)


def _platform() -> str | None:
    """Returns XLA's name of the platform, or None if only `jax.pure_callback` is possible."""
    if jax.default_backend() == "cpu":
        return "cpu"
    return "CUDA" if jax.default_backend() == "gpu" and driver() is not None else None


@ft.cache
def _on_arrays(function: Function):
    return lambda *args: function(*map(np.asarray, args))


@ft.cache
def _register(function: Function, platform: str) -> str:
    """Registers the function with XLA; returns the name of the target."""
    target = f"splagger_host_call_{next(NUMBERS)}"
    memory = _on_cpu if platform == "cpu" else _on_gpu
    handler = _HANDLER(ft.partial(_answer, function, memory))
    _handlers.append(handler)
    jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(handler), platform=platform)
    return target


class _Extension(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("type", c_int), ("next", c_void_p)]


class _Metadata(ctypes.Structure):
    _fields_ = [
        *(("size", c_size_t), ("version_size", c_size_t), ("version_extension", c_void_p)),
        *(("major", c_int), ("minor", c_int), ("traits", c_uint32)),
    ]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("base", _Extension), ("metadata", POINTER(_Metadata))]


class _ErrorArgs(ctypes.Structure):
    _fields_ = [
        *(("size", c_size_t), ("extension", c_void_p)),
        *(("message", c_char_p), ("code", c_int)),
    ]


class _StreamArgs(ctypes.Structure):
    _fields_ = [
        *(("size", c_size_t), ("extension", c_void_p)),
        *(("context", c_void_p), ("stream", c_void_p)),
    ]


class _Api(ctypes.Structure):
    _fields_ = [
        *(("size", c_size_t), ("extension", c_void_p)),
        *(("version_size", c_size_t), ("version_extension", c_void_p)),
        *(("major", c_int), ("minor", c_int), ("internal", c_void_p)),
        ("create_error", ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArgs))),
        *(("error_details", c_void_p), ("destroy_error", c_void_p), ("register", c_void_p)),
        ("get_stream", ctypes.CFUNCTYPE(c_void_p, POINTER(_StreamArgs))),
    ]


class _Buffer(ctypes.Structure):
    _fields_ = [
        *(("size", c_size_t), ("extension", c_void_p), ("dtype", c_int)),
        *(("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64))),
    ]


class _Buffers(ctypes.Structure):
    _fields_ = [
        *(("size", c_size_t), ("extension", c_void_p), ("count", c_int64)),
        *(("types", c_void_p), ("buffers", POINTER(POINTER(_Buffer)))),
    ]


class _Frame(ctypes.Structure):
    _fields_ = [
        *(("size", c_size_t), ("extension", POINTER(_Extension)), ("api", POINTER(_Api))),
        *(("context", c_void_p), ("stage", c_int), ("args", _Buffers), ("results", _Buffers)),
    ]


_HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))
_handlers: list[Any] = []  # XLA keeps pointers to them


def _answer(function: Function, memory: Callable, pointer) -> int | None:
    """Answers a call of XLA; returns the address of an error, or None."""
    frame = pointer.contents
    if frame.extension and frame.extension.contents.type == METADATA:
        extension = ctypes.cast(frame.extension, POINTER(_MetadataExtension)).contents
        metadata = extension.metadata.contents
        metadata.major, metadata.minor, metadata.traits = *VERSION, 0
        return None
    try:
        memory(function, frame)
    except BaseException as error:  # an exception cannot leave a function that C calls
        logging.getLogger(__name__).exception("a call from a compiled program failed")
        message = f"{type(error).__name__}: {error}".encode()
        args = _ErrorArgs(ctypes.sizeof(_ErrorArgs), None, message, INTERNAL_ERROR)
        return frame.api.contents.create_error(byref(args))
    return None


def _on_cpu(function: Function, frame: _Frame) -> None:
    args = [_view(*described) for described in _describe(frame.args)]
    results = [_view(*described) for described in _describe(frame.results)]
    for result, value in zip(results, function(*args), strict=True):
        np.copyto(result, value)


def _on_gpu(function: Function, frame: _Frame) -> None:
    stream = _StreamArgs(ctypes.sizeof(_StreamArgs), None, frame.context, None)
    if frame.api.contents.get_stream(byref(stream)):
        raise RuntimeError("XLA has no stream for this call")
    copies = Copies.of(stream.stream or 0)
    args, results = _describe(frame.args), _describe(frame.results)
    with copies.active():
        sources = [copies.array(("in", i), *rest) for i, (_, *rest) in enumerate(args)]
        copies.to_host([(one[0], source) for one, source in zip(args, sources, strict=True)])
        values = function(*(view for _, view in sources))
        for i, ((address, *rest), value) in enumerate(zip(results, values, strict=True)):
            staged = copies.array(("out", i), *rest)
            np.copyto(staged[1], value)
            copies.to_device(address, staged)


def _describe(buffers: _Buffers) -> list[tuple[int, Any, tuple[int, ...]]]:
    """Returns the address, type and shape of each buffer."""
    found = [buffers.buffers[i].contents for i in range(buffers.count)]
    return [(one.data, TYPES[one.dtype], tuple(one.dims[: one.rank])) for one in found]


# XLA passes valid addresses only, so a view that is found again is valid again.
_view = ft.lru_cache(maxsize=256)(view_of)
