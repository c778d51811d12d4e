"""The GRU's two loops for Hopper GPUs, one CUDA kernel per loop (`gru_hopper.cu`), and the matmuls around them.

Computes the same function as `splagger.nn.gru`, in half precision. The derivative needs the gates' arguments.
The forward loop stores them in float16 as [T, N, H, 4], in the order q, r, z, n.
"""

import functools as ft
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from splagger.nn.cells import GRUWeights
from splagger.nn.gpu import cuda
from splagger.nn.gpu.batching import one_call_per_run
from splagger.nn.gpu.number_types import HALF, matmul, rounded
from splagger.nn.gpu.recurrence import empty_if

SOURCE = Path(__file__).with_suffix(".cu")
TARGETS = (
    "splagger_gru_forward",
    "splagger_gru_forward_keeping",
    "splagger_gru_backward",
    "splagger_gru_step",
)
WIDTH, ROWS = 256, 16
INPUTS = 80, 128  # sizes the kernel is compiled for; inputs are padded to the next one
SEGMENTS = 4  # parallel segments of a sequence, cut at steps where all sequences reset
MOST_STEPS = 4096  # one mask per step is kept in shared memory


available = ft.partial(cuda.available, SOURCE, TARGETS)


def fits(steps: int, rows: int, width: int, inputs: int) -> bool:
    """Returns whether the kernels support this number of sequences and these sizes."""
    whole = rows > 0 and rows % ROWS == 0
    return whole and width == WIDTH and inputs <= INPUTS[-1] and steps <= MOST_STEPS


@jax.custom_vjp
def recur(
    weights: GRUWeights,
    state: Float[Array, "N H"],
    xs: Float[Array, "T N D"],
    resets: Bool[Array, "T N"],
) -> Float[Array, "T N H"]:
    """Returns all hidden states of a GRU."""
    return _call(TARGETS[0], _states(resets))(*_factors(weights, state, xs, resets))


def _recur_forward(weights, state, xs, resets):
    kept = jax.ShapeDtypeStruct((*resets.shape, WIDTH, 4), HALF.forward)
    factors = _factors(weights, state, xs, resets)
    hs, arguments = _call(TARGETS[1], (_states(resets), kept))(*factors)
    return hs, (weights, state, xs, resets, hs, arguments)


def _recur_backward(residuals, d_hs):
    weights, state, xs, resets, hs, arguments = residuals
    loop = _call(
        TARGETS[2],
        (
            jax.ShapeDtypeStruct(arguments.shape, HALF.backward),
            jax.ShapeDtypeStruct(state.shape, jnp.float32),
        ),
    )
    back = rounded(weights.hidden_weight, HALF.backward)
    d_arguments, d_state = loop(arguments, resets, back, state, hs, d_hs)
    d_all = d_arguments.reshape(*resets.shape, 4 * WIDTH)
    d_xs = matmul(d_all, _interleaved(weights.input_weight), HALF.backward)
    return _weight_gradients(d_all, state, xs, resets, hs), d_state, d_xs, None


recur.defvjp(_recur_forward, _recur_backward)


def _weight_gradients(d_arguments: Shaped[Array, "T N H4"], state, xs, resets, hs) -> GRUWeights:
    """Computes the derivatives by all weights and biases with one matmul by [h; x; 1]."""
    before = empty_if(resets[..., None], jnp.concatenate([state[None], hs[:-1]]))
    ones = jnp.ones((*resets.shape, 8))  # 8 columns, because fast matmuls need multiples of 8
    seen = jnp.concatenate([before, xs, ones], axis=-1)
    rows = lambda x: x.reshape(-1, x.shape[-1])  # noqa: E731
    d_weight = matmul(rows(d_arguments).T, rows(seen), HALF.backward)
    q, r, z, n = jnp.moveaxis(d_weight.reshape(WIDTH, 4, -1), 1, 0)
    inputs = slice(WIDTH, WIDTH + xs.shape[-1])
    return GRUWeights(
        jnp.concatenate([r[:, inputs], z[:, inputs], n[:, inputs]]),
        jnp.concatenate([r[:, :WIDTH], z[:, :WIDTH], q[:, :WIDTH]]),
        jnp.concatenate([r[:, -1], z[:, -1], n[:, -1]]),
        q[:, -1],
    )


def _interleaved(input_weight: Float[Array, "H3 D"]) -> Float[Array, "H4 D"]:
    """Returns four rows per neuron: zeros for q, then the rows of r, z and n."""
    gates = input_weight.reshape(3, WIDTH, -1)
    gates = jnp.concatenate([jnp.zeros_like(gates[:1]), gates])
    return jnp.moveaxis(gates, 0, 1).reshape(4 * WIDTH, -1)


def _factors(weights: GRUWeights, state, xs, resets):
    """Returns the arguments of the forward loop."""
    return (
        _padded(rounded(xs, HALF.forward)),
        resets,
        rounded(weights.hidden_weight, HALF.forward),
        _padded(rounded(weights.input_weight, HALF.forward)),
        jnp.concatenate([weights.candidate_bias, weights.bias]),
        state,
    )


class Step(eqx.Module):
    """One step of a GRU, for acting, with the same bits as a step of `recur`.

    It is one kernel, whose weights are in the order in which its threads read them.
    """

    weight: Shaped[Array, "eights words 8 4 4 2"]
    bias: Float[Array, " H4"]

    @classmethod
    def create(cls, weights: GRUWeights) -> "Step":
        inputs = _padded(rounded(weights.input_weight, HALF.forward))
        both = jnp.concatenate([inputs, rounded(weights.hidden_weight, HALF.forward)], axis=1)
        bias = jnp.concatenate([weights.candidate_bias, weights.bias])
        return cls(_for_threads(both), bias)

    def __call__(self, h: Float[Array, " H"], x: Float[Array, " D"]) -> Float[Array, " H"]:
        """Returns the next state of one sequence. A `vmap` over sequences becomes one kernel call."""
        return _step(_padded(rounded(x, HALF.forward)), h, self.weight, self.bias)


def _step_batch(x: Shaped[Array, "B D"], h: Float[Array, "B H"], weight, bias):
    """Returns the next states of a batch of whole blocks."""
    shape = jax.ShapeDtypeStruct(h.shape, jnp.float32)
    return jax.ffi.ffi_call(TARGETS[3], shape, vmap_method="broadcast_all")(x, h, weight, bias)


_step = one_call_per_run(_step_batch, ROWS)


def _for_threads(weight: Shaped[Array, "H3 I"]) -> Shaped[Array, "eights words 8 4 4 2"]:
    """Reorders a weight: a warp owns 8 neurons, and its threads read four words of two numbers at a time."""
    tiles = weight.reshape(3, WIDTH // 8, 8, -1, 2, 4, 2)
    words = jnp.einsum("gentkpi->etgknpi", tiles)  # eight, tile, gate, half; neuron, pair, number
    words = words.reshape(WIDTH // 8, -1, 8, 4, 2)
    words = jnp.pad(words, [(0, 0), (0, -words.shape[1] % 4), *[(0, 0)] * 3])
    return words.reshape(WIDTH // 8, -1, 4, 8, 4, 2).transpose(0, 1, 3, 4, 2, 5)


def _padded(x):
    """Pads the last axis to the next size that the kernels are compiled for."""
    size = next(size for size in INPUTS if x.shape[-1] <= size)
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])])


def _states(resets):
    return jax.ShapeDtypeStruct((*resets.shape, WIDTH), jnp.float32)


def _call(target, results):
    call = jax.ffi.ffi_call(target, results, vmap_method="broadcast_all")
    return ft.partial(call, segments=jnp.dtype(jnp.int32).type(SEGMENTS))
