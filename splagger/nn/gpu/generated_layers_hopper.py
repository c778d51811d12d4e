"""Generated layers for Hopper GPUs, by CUDA kernels (`generated_layers_hopper.cu`).

`forward` and `backward` replace those of `generated_layers`. `Actor` computes all layers of an acting policy
with one kernel.

The kernels read a right factor [inner, columns] in chunks of 64 × 128. A chunk consists of tiles with 8 columns
× 8 inner numbers. XLA reorders a factor when it rounds it.
"""

import functools as ft
from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from splagger.nn.gpu import cuda
from splagger.nn.gpu.batching import one_call_per_run
from splagger.nn.gpu.generated_layers import Kernels
from splagger.nn.gpu.number_types import HALF, rounded

SOURCE = Path(__file__).with_suffix(".cu")
TARGETS = (
    "splagger_generated_forward",
    "splagger_generated_by_inputs",
    "splagger_generated_by_weight",
    "splagger_generated_act",
    "splagger_generated_round_left",
    "splagger_generated_round_right",
)
ROWS, COLUMNS, INNER, TILE = 128, 128, 64, 8
SIZES, MOST_TERMS, MOST_SAMPLES = (128, 256), 64, 6_000
ACTING_SIZES, ACTING_TERMS, MOST_OUTPUTS, ACTING_ROWS = (256, 256, 128), 26, 8, 16


available = ft.partial(cuda.available, SOURCE, TARGETS)


def fits(samples: int, inputs: int, terms: int, outputs: int) -> bool:
    """Returns whether the kernels support a layer of this size."""
    whole = inputs in SIZES and outputs in SIZES and ROWS <= samples <= MOST_SAMPLES
    return whole and terms % 2 == 0 and terms <= MOST_TERMS


def forward(
    x: Shaped[Array, "B I"],
    terms: Float[Array, "K B"],
    weight: Shaped[Array, "I K O"],
    bias: Float[Array, "K O"],
) -> Float[Array, "B O"]:
    """Computes y = Σₖ z̃ₖ (x Hₖ + bₖ)."""
    shape = jax.ShapeDtypeStruct((x.shape[0], bias.shape[1]), jnp.float32)
    return _call(TARGETS[0], shape)(x, terms, inner_inputs(weight), bias)


def by_inputs(
    d_y: Shaped[Array, "B O"],
    x: Shaped[Array, "B I"],
    terms: Float[Array, "K B"],
    weight: Shaped[Array, "I K O"],
) -> tuple[Float[Array, "B I"], Float[Array, "K B"]]:
    """Returns (dx, ⟨dy Hₖᵀ, x⟩ for every term and sample)."""
    parts = x.shape[1] // COLUMNS
    shapes = [
        jax.ShapeDtypeStruct(x.shape, jnp.float32),
        jax.ShapeDtypeStruct((parts, *terms.shape), jnp.float32),
    ]
    d_x, d_terms = _call(TARGETS[1], shapes)(d_y, x, terms, inner_outputs(weight))
    return d_x, d_terms.sum(0)


def by_weight(
    d_y: Shaped[Array, "b o 4 2 16 8 4 2"], x: Shaped[Array, "I b64"], terms: Float[Array, "K B"]
) -> Float[Array, "I K O"]:
    """Computes dHₖ = xᵀ (z̃ₖ dy), given factors in the kernel's order, padded to whole chunks of samples."""
    shape = jax.ShapeDtypeStruct((len(x), len(terms), COLUMNS * d_y.shape[1]), jnp.float32)
    padded = jnp.pad(terms, ((0, 0), (0, x.shape[1] - terms.shape[1])))
    return _call(TARGETS[2], shape)(x, d_y, padded)


def backward(
    d_y: Float[Array, "B O"],
    x: Float[Array, "B I"],
    terms: Float[Array, "K B"],
    weight: Float[Array, "I K O"],
) -> tuple[Float[Array, "B I"], Float[Array, "K B"], Float[Array, "I K O"]]:
    """Returns (dx, ⟨dy Hₖᵀ, x⟩ for every term and sample, dH).

    One kernel per factor writes it in all orders. XLA would transpose it several times.
    """
    (samples, inputs), outputs = x.shape, d_y.shape[1]
    chunks = -(-samples // INNER)
    half = lambda *shape: jax.ShapeDtypeStruct(shape, HALF.backward)  # noqa: E731
    left = half(samples, inputs), half(inputs, chunks * INNER)
    right = (
        half(samples, outputs),
        half(chunks, outputs // COLUMNS, 4, 2, COLUMNS // TILE, TILE, 4, 2),
    )
    x_half, x_ordered = _call(TARGETS[4], left)(x)
    d_half, d_ordered = _call(TARGETS[5], right)(d_y)
    d_x, d_terms = by_inputs(d_half, x_half, terms, rounded(weight, HALF.backward))
    return d_x, d_terms, by_weight(d_ordered, x_ordered, terms)


KERNELS = Kernels(forward, backward)


def inner_inputs(weight: Shaped[Array, "I K O"]) -> Shaped[Array, "K o i 8 16 8 8"]:
    """Reorders Hₖ, with inputs as the inner axis and outputs as columns."""
    inputs, terms, outputs = weight.shape
    tiles = weight.reshape(
        inputs // INNER, TILE, TILE, terms, outputs // COLUMNS, COLUMNS // TILE, TILE
    )
    return tiles.transpose(3, 4, 0, 1, 5, 6, 2)


def inner_outputs(weight: Shaped[Array, "I K O"]) -> Shaped[Array, "K i o 8 16 8 8"]:
    """Reorders Hₖᵀ, with outputs as the inner axis and inputs as columns."""
    inputs, terms, outputs = weight.shape
    tiles = weight.reshape(
        inputs // COLUMNS, COLUMNS // TILE, TILE, terms, outputs // INNER, TILE, TILE
    )
    return tiles.transpose(3, 0, 4, 5, 1, 2, 6)


def inner_samples(d_y: Shaped[Array, "B O"]) -> Shaped[Array, "b o 4 2 16 8 4 2"]:
    """Reorders dy, with samples as the inner axis: each thread owns 16 in a row (`by_weight` in the .cu file).

    This is the definition of what the kernel `round_factor` writes.
    """
    samples, outputs = d_y.shape
    tiles = d_y.reshape(samples // INNER, 4, 4, 2, 2, outputs // COLUMNS, COLUMNS // TILE, TILE)
    return tiles.transpose(0, 5, 2, 3, 6, 7, 1, 4)


class Actor(eqx.Module):
    """Three generated layers with tanh between them, for acting: each step reads the weights once.

    `weights` are float16, in the order in which the kernel's threads read them.
    """

    weights: tuple[Shaped[Array, "..."], ...]
    biases: tuple[Float[Array, "terms _"], ...]
    size: int = eqx.field(static=True)  # the number of outputs

    @classmethod
    def create(cls, weights: Sequence[Shaped[Array, "_ terms _"]], biases: Sequence) -> "Actor":
        """Builds an actor from weights that are already rounded."""
        size = biases[-1].shape[-1]
        pad = lambda x: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, MOST_OUTPUTS - size)])  # noqa: E731
        ordered = _for_warps(weights[0]), _for_warps(weights[1]), _for_blocks(pad(weights[2]))
        return cls(ordered, (biases[0], biases[1], pad(biases[2])), size)

    @staticmethod
    def fits(shapes: Sequence[tuple[int, int, int]]) -> bool:
        """Returns whether the kernel supports layers with these (inputs, terms, outputs)."""
        if len(shapes) != len(ACTING_SIZES) or any(shape[1] != ACTING_TERMS for shape in shapes):
            return False
        inputs, outputs = tuple(shape[0] for shape in shapes), shapes[-1][2]
        return inputs == ACTING_SIZES and outputs <= MOST_OUTPUTS

    def __call__(self, terms: Float[Array, " terms"], x: Float[Array, " in"]):
        """Returns the outputs of one sample. A `vmap` over samples becomes one kernel call."""
        layers = [a for pair in zip(self.weights, self.biases, strict=True) for a in pair]
        return _act(rounded(x, HALF.forward), terms, *layers)[: self.size]


def _act_batch(x: Shaped[Array, "B in"], terms: Float[Array, "B terms"], *layers):
    """Returns the outputs of a batch of whole blocks."""
    return _call(TARGETS[3], jax.ShapeDtypeStruct((len(x), MOST_OUTPUTS), jnp.float32))(
        x, terms, *layers
    )


_act = one_call_per_run(_act_batch, ACTING_ROWS)


def _for_warps(weight: Shaped[Array, "256 K O"]) -> Shaped[Array, "8 8 K o 8 4 2 2 2"]:
    """Reorders a weight: blocks own an eighth of the outputs, warps of the inputs; threads read 8 numbers at once."""
    _, terms, outputs = weight.shape
    fragments = weight.reshape(8, 2, 2, 4, 2, terms, 8, outputs // 64, TILE)
    return fragments.transpose(6, 0, 5, 7, 8, 3, 1, 2, 4)


def _for_blocks(weight: Shaped[Array, "128 K 8"]) -> Shaped[Array, "8 K 8 4 2 2"]:
    """Reorders a weight: blocks own an eighth of the inputs, warps some of the terms."""
    return weight.reshape(8, 2, 4, 2, weight.shape[1], TILE).transpose(0, 4, 5, 2, 1, 3)


def _call(target, shapes):
    return jax.ffi.ffi_call(target, shapes, vmap_method="broadcast_all")
