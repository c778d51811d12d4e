"""Layers that a hypernetwork generates, y = Σₖ z̃ₖ (x Hₖ + bₖ), for a batch of samples on GPUs (Pallas, Triton).

As XLA compiles it, all x Hₖ are written and read again before they are added: 26 numbers for each one of y, three
times forward and backward. These kernels add them where they are computed:

    forward      y   = Σₖ z̃ₖ (x Hₖ + bₖ)
    by inputs    dx  = Σₖ z̃ₖ gₖ  and  dz̃ₖ = ⟨gₖ, x⟩, both of gₖ = dy Hₖᵀ
    by weight    dHₖ = xᵀ (z̃ₖ dy)

Each is a matmul as large as x H. Samples that do not fill a last block are done in one that overlaps the block
before it.
"""

import functools as ft
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Shaped


class Kernels(NamedTuple):
    """One way to do the three."""

    forward: Callable
    by_inputs: Callable
    by_weight: Callable


class Tiles(NamedTuple):
    """Samples × columns of what one program computes, and how: warps, reads ahead of time."""

    samples: int
    columns: int
    warps: int
    stages: int


FORWARD = Tiles(128, 128, 8, 2)
BY_INPUTS = Tiles(128, 128, 8, 2)
BY_WEIGHT = Tiles(64, 128, 8, 3)  # samples at a time; inputs and outputs
TERMS = 2  # that a program of the last kernel does at once


def fits(samples: int, inputs: int, terms: int, outputs: int) -> bool:
    """Whether a layer is made of whole blocks."""
    power_of_two = inputs & (inputs - 1) == 0 and outputs & (outputs - 1) == 0
    columns = max(FORWARD.columns, BY_INPUTS.columns, BY_WEIGHT.columns)
    enough = samples >= max(FORWARD.samples, BY_INPUTS.samples) and min(inputs, outputs) >= columns
    return power_of_two and enough and terms % TERMS == 0


def forward(
    x: Shaped[Array, "B I"],
    terms: Float[Array, "K B"],
    weight: Shaped[Array, "I K O"],
    bias: Float[Array, "K O"],
    interpret: bool = False,
) -> Float[Array, "B O"]:
    """y of every sample."""
    samples, outputs = x.shape[0], bias.shape[1]
    return pl.pallas_call(
        ft.partial(_forward, outputs),
        out_shape=jax.ShapeDtypeStruct((samples, outputs), jnp.float32),
        grid=(outputs // FORWARD.columns, pl.cdiv(samples, FORWARD.samples)),
        interpret=interpret,
        **_parameters(FORWARD),
    )(x, terms, weight.reshape(x.shape[1], -1), bias)


def by_inputs(
    d_y: Shaped[Array, "B O"],
    x: Shaped[Array, "B I"],
    terms: Float[Array, "K B"],
    weight: Shaped[Array, "I K O"],
    interpret: bool = False,
) -> tuple[Float[Array, "B I"], Float[Array, "K B"]]:
    """(dx, ⟨dy Hₖᵀ, x⟩ of every term and sample)."""
    (samples, inputs), count = x.shape, terms.shape[0]
    parts = inputs // BY_INPUTS.columns
    d_x, d_terms = pl.pallas_call(
        ft.partial(_by_inputs, d_y.shape[1]),
        out_shape=[
            jax.ShapeDtypeStruct((samples, inputs), jnp.float32),
            jax.ShapeDtypeStruct((parts, count, samples), jnp.float32),
        ],
        grid=(parts, pl.cdiv(samples, BY_INPUTS.samples)),
        interpret=interpret,
        **_parameters(BY_INPUTS),
    )(d_y, x, terms, weight.reshape(inputs, -1))
    return d_x, d_terms.sum(0)


def by_weight(
    d_y: Shaped[Array, "B O"],
    x: Shaped[Array, "B I"],
    terms: Float[Array, "K B"],
    interpret: bool = False,
) -> Float[Array, "I K O"]:
    """dH."""
    inputs, outputs, count = x.shape[1], d_y.shape[1], terms.shape[0]
    size = BY_WEIGHT.columns
    d_weight = pl.pallas_call(
        ft.partial(_by_weight, outputs),
        out_shape=jax.ShapeDtypeStruct((inputs, count * outputs), jnp.float32),
        grid=(outputs // size, inputs // size, count // TERMS),
        interpret=interpret,
        **_parameters(BY_WEIGHT),
    )(d_y, x, terms)
    return d_weight.reshape(inputs, count, outputs)


KERNELS = Kernels(forward, by_inputs, by_weight)


def _parameters(tiles: Tiles):
    params = triton.CompilerParams(num_warps=tiles.warps, num_stages=tiles.stages)
    return {"compiler_params": params}


def _dot(a, b):
    return jnp.dot(a, b, preferred_element_type=jnp.float32)


def _block(index, size, samples):
    """The samples of a block; the last one ends with the last sample."""
    return pl.ds(jnp.minimum(index * size, samples - size), size)


def _forward(outputs, x, terms, weight, bias, y):
    size = FORWARD.columns
    rows = _block(pl.program_id(1), FORWARD.samples, x.shape[0])
    start = pl.program_id(0) * size
    xs = x[rows, :]

    def add(k, total):
        wide = _dot(xs, weight[:, pl.ds(k * outputs + start, size)])
        wide = wide + bias[k, pl.ds(start, size)][None]
        return total + terms[k, rows][:, None] * wide

    zero = jnp.zeros((FORWARD.samples, size), jnp.float32)
    y[rows, pl.ds(start, size)] = jax.lax.fori_loop(0, terms.shape[0], add, zero)


def _by_inputs(outputs, d_y, x, terms, weight, d_x, d_terms):
    part = pl.program_id(0)
    rows = _block(pl.program_id(1), BY_INPUTS.samples, x.shape[0])
    inputs = pl.ds(part * BY_INPUTS.columns, BY_INPUTS.columns)
    d_ys, xs = d_y[rows, :], x[rows, inputs]

    def add(k, total):
        g = _dot(d_ys, weight[inputs, pl.ds(k * outputs, outputs)].T)
        d_terms[part, k, rows] = (g * xs.astype(jnp.float32)).sum(axis=1)
        return total + terms[k, rows][:, None] * g

    zero = jnp.zeros((BY_INPUTS.samples, BY_INPUTS.columns), jnp.float32)
    d_x[rows, inputs] = jax.lax.fori_loop(0, terms.shape[0], add, zero)


def _by_weight(outputs, d_y, x, terms, d_weight):
    samples, size = x.shape[0], BY_WEIGHT.columns
    start, first = pl.program_id(0) * size, TERMS * pl.program_id(2)
    inputs = pl.ds(pl.program_id(1) * size, size)

    def add(i, sums):
        rows = _block(i, BY_WEIGHT.samples, samples)
        xs, d_ys = x[rows, inputs].T, d_y[rows, pl.ds(start, size)]
        new = rows.start + jnp.arange(BY_WEIGHT.samples) >= i * BY_WEIGHT.samples

        def scaled(k):
            z = jnp.where(new, terms[k, rows], 0.0)
            return (d_ys.astype(jnp.float32) * z[:, None]).astype(d_ys.dtype)

        return tuple(s + _dot(xs, scaled(first + j)) for j, s in enumerate(sums))

    zero = jnp.zeros((size, size), jnp.float32)
    steps = pl.cdiv(samples, BY_WEIGHT.samples)
    sums = jax.lax.fori_loop(0, steps, add, (zero,) * TERMS)
    for j, total in enumerate(sums):
        d_weight[inputs, pl.ds((first + j) * outputs + start, size)] = total
