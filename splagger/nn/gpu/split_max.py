"""Split aggregation with a running maximum on GPUs, one CUDA kernel per direction (`split_max.cu`).

The definition is `splagger.memory.split` with the aggregator `Max`. Its associative scan takes 2√T sequential steps
of several kernels each; here, each thread loops over the steps of one neuron.
"""

import functools as ft
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from splagger.nn.gpu import cuda

SOURCE = Path(__file__).with_suffix(".cu")
TARGETS = "splagger_split_max", "splagger_split_max_keeping", "splagger_split_max_backward"


available = ft.partial(cuda.available, SOURCE, TARGETS)


def unroll(
    skip: int,
    floor: float,
    maximum: Float[Array, "*batch M"],
    es: Float[Array, "T *batch W"],
    resets: Bool[Array, "T *batch"],
) -> tuple[Float[Array, "*batch M"], Float[Array, "T *batch W"]]:
    """Returns (the last maximum, [eₜ[:skip]; max(mₜ, floor)] for all t), with mₜ the maximum since the last reset."""
    rows = resets[0].size
    results: Any = _split_max(
        skip,
        floor,
        maximum.reshape(rows, maximum.shape[-1]),
        es.reshape(len(es), rows, es.shape[-1]),
        resets.reshape(len(es), rows),
    )
    last, outputs = results
    return last.reshape(maximum.shape), outputs.reshape(es.shape)


@ft.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _split_max(skip, floor, start, es, resets):
    shapes = _like(start), _like(es)
    return _call(TARGETS[0], shapes, skip, floor=jnp.dtype(jnp.float32).type(floor))(
        es, resets, start
    )


def _forward(skip, floor, start, es, resets):
    shapes = _like(start), _like(es), jax.ShapeDtypeStruct(es.shape, jnp.uint8)
    call = _call(TARGETS[1], shapes, skip, floor=jnp.dtype(jnp.float32).type(floor))
    last, outputs, kept = call(es, resets, start)
    return (last, outputs), kept


def _backward(skip, floor, kept, d_results):
    d_last, d_outputs = d_results
    d_es, d_start = _call(TARGETS[2], (_like(d_outputs), _like(d_last)), skip)(
        d_last, d_outputs, kept
    )
    return d_start, d_es, None


_split_max.defvjp(_forward, _backward)


def _like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _call(target, shapes, skip, **attributes):
    call = jax.ffi.ffi_call(target, shapes, vmap_method="broadcast_all")
    return ft.partial(call, skip=jnp.dtype(jnp.int32).type(skip), **attributes)
