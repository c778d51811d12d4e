"""The GRU's two loops for Hopper GPUs, one kernel a loop: `gru_cluster.cu`, and the matmuls around it.

The same function as `splagger.nn.gru` defines, in half precision. Its derivative needs the gates' arguments,
which the loop forward keeps in float16: [T, N, H, 4], in the order q, r, z, n.
"""

import functools as ft
from pathlib import Path

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from splagger.nn import cuda
from splagger.nn.precision import HALF, matmul, on_gpu, rounded
from splagger.nn.recurrence import empty_if

SOURCE = Path(__file__).with_suffix(".cu")
TARGETS = "splagger_gru_forward", "splagger_gru_forward_keeping", "splagger_gru_backward"
WIDTH, ROWS = 256, 16
INPUTS = 80, 128  # sizes the kernel is compiled for; inputs are filled up to the next of them
SEGMENTS = 4  # pieces of a sequence that are done side by side, cut where all sequences begin anew
MOST_STEPS = 4096  # of which one flag each is kept in shared memory


def available() -> bool:
    """Whether the device is a Hopper GPU, and the kernels could be compiled for it."""
    hopper = getattr(jax.local_devices()[0], "compute_capability", "") == "9.0"
    return on_gpu() and hopper and cuda.register(SOURCE, TARGETS, "90a")


def fits(steps: int, rows: int, width: int, inputs: int) -> bool:
    """Whether the kernels can do this many sequences of this many neurons."""
    whole = rows > 0 and rows % ROWS == 0
    return whole and width == WIDTH and inputs <= INPUTS[-1] and steps <= MOST_STEPS


@jax.custom_vjp
def recur(
    input_weight: Float[Array, "H3 D"],
    hidden_weight: Float[Array, "H3 H"],
    bias: Float[Array, " H3"],
    candidate_bias: Float[Array, " H"],
    state: Float[Array, "N H"],
    xs: Float[Array, "T N D"],
    resets: Bool[Array, "T N"],
) -> Float[Array, "T N H"]:
    """All hidden states of a GRU."""
    arguments = _factors(input_weight, hidden_weight, bias, candidate_bias, state, xs, resets)
    return _call(TARGETS[0], _states(resets))(*arguments)


def _recur_forward(input_weight, hidden_weight, bias, candidate_bias, state, xs, resets):
    factors = _factors(input_weight, hidden_weight, bias, candidate_bias, state, xs, resets)
    kept = jax.ShapeDtypeStruct((*resets.shape, WIDTH, 4), HALF.forward)
    hs, arguments = _call(TARGETS[1], (_states(resets), kept))(*factors)
    return hs, (input_weight, hidden_weight, state, xs, resets, hs, arguments)


def _recur_backward(residuals, d_hs):
    input_weight, hidden_weight, state, xs, resets, hs, arguments = residuals
    loop = _call(
        TARGETS[2],
        (
            jax.ShapeDtypeStruct(arguments.shape, HALF.backward),
            jax.ShapeDtypeStruct(state.shape, jnp.float32),
        ),
    )
    back = rounded(hidden_weight.T, HALF.backward)
    d_arguments, d_state = loop(arguments, resets, back, state, hs, d_hs)
    d_all = d_arguments.reshape(*resets.shape, 4 * WIDTH)
    d_xs = matmul(d_all, _interleaved(input_weight), HALF.backward)
    return *_weight_gradients(d_all, state, xs, resets, hs), d_state, d_xs, None


recur.defvjp(_recur_forward, _recur_backward)


def _weight_gradients(d_arguments: Shaped[Array, "T N H4"], state, xs, resets, hs):
    """Of input weight, hidden weight, bias and candidate bias: one matmul with [h; x; 1]."""
    before = empty_if(resets[..., None], jnp.concatenate([state[None], hs[:-1]]))
    ones = jnp.ones((*resets.shape, 8))  # 8, for matmuls take multiples of it
    seen = jnp.concatenate([before, xs, ones], axis=-1)
    rows = lambda x: x.reshape(-1, x.shape[-1])  # noqa: E731
    d_weight = matmul(rows(d_arguments).T, rows(seen), HALF.backward)
    q, r, z, n = jnp.moveaxis(d_weight.reshape(WIDTH, 4, -1), 1, 0)
    inputs = slice(WIDTH, WIDTH + xs.shape[-1])
    return (
        jnp.concatenate([r[:, inputs], z[:, inputs], n[:, inputs]]),
        jnp.concatenate([r[:, :WIDTH], z[:, :WIDTH], q[:, :WIDTH]]),
        jnp.concatenate([r[:, -1], z[:, -1], n[:, -1]]),
        q[:, -1],
    )


def _interleaved(input_weight: Float[Array, "H3 D"]) -> Float[Array, "H4 D"]:
    """Rows for q (none), r, z and n of each neuron, one after another."""
    gates = input_weight.reshape(3, WIDTH, -1)
    gates = jnp.concatenate([jnp.zeros_like(gates[:1]), gates])
    return jnp.moveaxis(gates, 0, 1).reshape(4 * WIDTH, -1)


def _factors(input_weight, hidden_weight, bias, candidate_bias, state, xs, resets):
    """The arguments of the loop forward."""
    size = next(size for size in INPUTS if xs.shape[-1] <= size)
    filled = lambda x: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])])  # noqa: E731
    return (
        filled(rounded(xs, HALF.forward)),
        resets,
        rounded(hidden_weight, HALF.forward),
        filled(rounded(input_weight, HALF.forward)),
        jnp.concatenate([candidate_bias, bias]),
        state,
    )


def _states(resets):
    return jax.ShapeDtypeStruct((*resets.shape, WIDTH), jnp.float32)


def _call(target, results):
    call = jax.ffi.ffi_call(target, results, vmap_method="broadcast_all")
    return ft.partial(call, segments=jnp.dtype(jnp.int32).type(SEGMENTS))
