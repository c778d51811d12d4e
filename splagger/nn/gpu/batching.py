"""Kernels that act for all environments of a run: a `vmap` over environments becomes one call."""

from collections.abc import Callable

import jax
import jax.numpy as jnp


def one_call_per_run(batch: Callable, rows: int) -> Callable:
    """Returns a function of one sample, f(x, y, *weights), given `batch` for samples x [B, …], y [B, …] and one array.

    A `vmap` over samples calls `batch` once, with the samples padded to a multiple of `rows`. A further `vmap` over
    runs, each with its own weights, must be supported by `batch`.
    """

    def padded(x, y, *weights):
        pad = lambda a: jnp.pad(a, ((0, -len(a) % rows), (0, 0)))  # noqa: E731
        return batch(pad(x), pad(y), *weights)[: len(x)]

    def one(x, y, *weights):
        return padded(x[None], y[None], *weights)[0]

    function = jax.custom_batching.custom_vmap(one)

    @function.def_vmap
    def _(size, mapped, x, y, *weights):
        if any(mapped[2:]):  # mapped over runs, with one sample each
            axes = [0 if m else None for m in mapped]
            return jax.vmap(one, in_axes=axes)(x, y, *weights), True
        both = [
            a if m else jnp.broadcast_to(a, (size, *a.shape))
            for a, m in zip((x, y), mapped[:2], strict=True)
        ]
        return padded(*both, *weights), True

    return function
