"""The GRU's two loops for GPUs, one kernel a step (Pallas, Triton).

As XLA compiles them, a step is a matmul and three to five small kernels around it, each of which waits for the
one before: 8 µs forward and 11 µs backward, of which the matmul is 3. Here one kernel does all of it. The
kernels of a loop share one buffer of all time steps: each reads what the one before it wrote.

Every program of a kernel computes `ROWS` sequences × `COLUMNS` neurons of one run.
"""

import functools as ft

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Shaped

from splagger.nn.precision import on_gpu

ROWS, COLUMNS, WARPS, UNROLL = 16, 32, 4, 8
# With more rows the weights are read too often, with more neurons they do not fit a program's registers.
MOST_ROWS, MOST_WIDTH = 32, 256


def available() -> bool:
    """Whether the device runs Triton's kernels: NVIDIA's GPUs do, from Ampere on."""
    capability = getattr(jax.local_devices()[0], "compute_capability", "0")
    return on_gpu() and capability.replace(".", "").isdigit() and float(capability) >= 8


def fits(rows: int, width: int) -> bool:
    """Whether the kernels can do this many sequences of this many neurons."""
    power_of_two = width & (width - 1) == 0
    return (
        rows in range(ROWS, MOST_ROWS + 1, ROWS) and COLUMNS <= width <= MOST_WIDTH and power_of_two
    )


def forward_loop(
    inputs: Float[Array, "T N H3"],
    keep: Float[Array, "T1 N"],
    weight: Shaped[Array, "H H3"],
    bias: Float[Array, " H4"],
    state: Float[Array, "N H"],
    interpret: bool = False,
) -> Float[Array, "T1 N H"]:
    """The state before all steps and after each, of input gates W x (r, z, n) and Uᵀ.

    `keep` is 0 where a step begins with an empty state, and `bias` has those of q, r, z and n.
    """
    steps, rows, _ = inputs.shape
    width = state.shape[1]
    hs = jnp.zeros((steps + 1, rows, width)).at[0].set(state)
    kernel = _call(_forward_step, rows, width, [hs], aliases={5: 0}, interpret=interpret)

    def step(hs, t):
        return kernel(t[None], inputs, keep, weight, bias, hs)[0], None

    return jax.lax.scan(step, hs, jnp.arange(steps), unroll=UNROLL)[0]


def backward_loop(
    arguments: Shaped[Array, "T N H4"],
    keep: Float[Array, "T1 N"],
    back: Shaped[Array, "H3 H"],
    bias: Float[Array, " H4"],
    hs: Float[Array, "T1 N H"],
    d_hs: Float[Array, "T N H"],
    interpret: bool = False,
) -> tuple[Shaped[Array, "T N H4"], Float[Array, "N H"]]:
    """(derivatives by the arguments of q, r, z and n; by the first state), of those by the states.

    `arguments` are without their biases, `back` is [Uₙ; Uᵣ; U_z], and `keep` ends with a 0.
    """
    steps, rows, width = d_hs.shape
    d_arguments = jnp.zeros((steps, rows, 4 * width), back.dtype)
    carried = jnp.zeros((2, rows, width))  # dh·z of the steps before and after, in turns
    buffers = [d_arguments, carried]
    kernel = _call(_backward_step, rows, width, buffers, aliases={7: 0, 8: 1}, interpret=interpret)

    def step(buffers, t):
        return tuple(kernel(t[None], arguments, keep, back, bias, hs, d_hs, *buffers)), None

    index = jnp.arange(steps)
    (d_arguments, carried), _ = jax.lax.scan(
        step, tuple(buffers), index, reverse=True, unroll=UNROLL
    )
    gates = d_arguments[0, :, : 3 * width]
    d_state = carried[0] + jnp.matmul(gates, back, preferred_element_type=jnp.float32)
    return d_arguments, d_state * keep[0][:, None]


def _call(kernel, rows, width, buffers, aliases, interpret):
    """A kernel that writes into `buffers`, which are its last arguments."""
    return pl.pallas_call(
        ft.partial(kernel, width),
        out_shape=[jax.ShapeDtypeStruct(b.shape, b.dtype) for b in buffers],
        grid=(rows // ROWS, width // COLUMNS),
        input_output_aliases=aliases,
        compiler_params=triton.CompilerParams(num_warps=WARPS),
        interpret=interpret,
    )


def _here(width):
    """(rows, function: columns of the k-th of several arrays side by side) of this program."""
    start = pl.program_id(1) * COLUMNS
    columns = lambda k: pl.ds(k * width + start, COLUMNS)  # noqa: E731
    return pl.ds(pl.program_id(0) * ROWS, ROWS), columns


def _dot(a, b):
    return jnp.dot(a, b, preferred_element_type=jnp.float32)


def _sigmoid(x):
    return 1 / (1 + jnp.exp(-x))


# Both steps load everything before they compute anything: the loads then wait for memory together.


def _forward_step(width, t, inputs, keep, weight, bias, _, hs):
    t = t[0]
    rows, columns = _here(width)
    weights = [weight[:, columns(k)] for k in range(3)]
    biases = [bias[columns(k)][None] for k in range(4)]
    h, before, kept = hs[t, rows, :], hs[t, rows, columns(0)], keep[t, rows][:, None] > 0
    x_r, x_z, x_n = (inputs[t, rows, columns(k)] for k in range(3))

    h = jnp.where(kept, h, 0.0).astype(weight.dtype)
    r, z, q = (_dot(h, w) for w in weights)
    r, z = _sigmoid(x_r + r + biases[1]), _sigmoid(x_z + z + biases[2])
    n = jnp.tanh(x_n + biases[3] + r * (q + biases[0]))
    hs[t + 1, rows, columns(0)] = n + z * (jnp.where(kept, before, 0.0) - n)


def _backward_step(width, t, arguments, keep, back, bias, hs, d_hs, _, __, d_arguments, carried):
    """dhₜ₋₁ = dhₜ·z + [dhₜ·∂q, dhₜ·∂r, dhₜ·∂z] [Uₙ; Uᵣ; U_z]; the gates are computed again."""
    t = t[0]
    rows, columns = _here(width)
    weights = [back[pl.ds(k * width, width), columns(0)] for k in range(3)]
    biases = [bias[columns(k)][None] for k in range(4)]
    # After the last step comes nothing, of which nothing is kept: any row that no program writes now will do.
    after = (t + 1) % d_arguments.shape[0]
    later = [d_arguments[after, rows, pl.ds(k * width, width)] for k in range(3)]
    d_h, d_out = carried[(t + 1) % 2, rows, columns(0)], d_hs[t, rows, columns(0)]
    kept, kept_later = keep[t, rows][:, None] > 0, keep[t + 1, rows][:, None] > 0
    before = hs[t, rows, columns(0)]
    q, r, z, n = (arguments[t, rows, columns(k)].astype(jnp.float32) for k in range(4))

    q, r, z, n = (x + b for x, b in zip((q, r, z, n), biases, strict=True))
    r, z = _sigmoid(r), _sigmoid(z)
    n = jnp.tanh(n + r * q)
    from_q, from_r, from_z = (_dot(x, w) for x, w in zip(later, weights, strict=True))
    d_h = jnp.where(kept_later, d_h + from_q + from_r + from_z, 0.0) + d_out
    carried[t % 2, rows, columns(0)] = d_h * z
    d_n = d_h * (1 - z) * (1 - n * n)
    d_z = d_h * (jnp.where(kept, before, 0.0) - n) * z * (1 - z)
    for k, d in enumerate((d_n * r, d_n * q * r * (1 - r), d_z, d_n)):
        d_arguments[t, rows, columns(k)] = d.astype(d_arguments.dtype)
