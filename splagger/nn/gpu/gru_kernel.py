"""The GRU's two loops for GPUs, one kernel per step (Pallas, Triton).

XLA compiles a step to a matmul and three to five small kernels around it, each of which waits for the previous
one: 8 µs forward and 11 µs backward, of which the matmul takes 3. Here one kernel computes the whole step. The
kernels of a loop share buffers of all time steps: each reads what the previous one wrote.

Every program of a kernel computes `ROWS` sequences × `COLUMNS` neurons of one run. It spends its time waiting for
memory, so it should wait only once. It therefore reads the matmul's factors in a loop, and everything else before
it. Triton prefetches the reads of such a loop without registers, if the factors need no conversion; the program
that writes a state therefore rounds it.
"""

import functools as ft

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float, Shaped

from splagger.nn.gpu import cuda
from splagger.nn.gpu.number_types import on_gpu

try:
    from jax.experimental.pallas import triton
except ImportError:  # JAX plans to remove it; XLA's loop then takes the steps
    triton = None

ROWS, COLUMNS, WARPS, UNROLL = 16, 32, 4, 8
CHUNK, AHEAD = 128, 3  # size of one read along a matmul's inner axis; number of reads to prefetch
# With more rows, weights are read too often. With more neurons, a program's share of the weights is too large.
MOST_ROWS, MOST_WIDTH = 32, 512


def available() -> bool:
    """Returns whether Triton kernels are wanted, and the device runs them: NVIDIA GPUs from Ampere on do."""
    if triton is None or cuda.switch() == "off":
        return False
    capability = getattr(jax.local_devices()[0], "compute_capability", "0")
    return on_gpu() and capability.replace(".", "").isdigit() and float(capability) >= 8


def fits(rows: int, width: int) -> bool:
    """Returns whether the kernels support this number of sequences and neurons."""
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
    """Returns the states before the first step and after each step.

    `inputs` are W x (r, z, n), and `weight` is Uᵀ. `keep` is 0 where a step begins with an empty state. `bias` has the biases of q, r, z and n.
    """
    steps, rows, _ = inputs.shape
    width = state.shape[1]
    kept = jnp.where(keep[0][:, None] > 0, state, 0.0).astype(weight.dtype)
    hs = jnp.zeros((steps + 1, rows, width)).at[0].set(state)
    factors = jnp.zeros(hs.shape, weight.dtype).at[0].set(kept)  # for the next step's matmul
    call = ft.partial(_call, rows=rows, width=width, interpret=interpret)
    kernel = call(_forward_step, [hs, factors], aliases={5: 0, 6: 1}, reads=_chunks(width, 1)[0])

    def step(buffers, t):
        return tuple(kernel(t[None], inputs, keep, weight, bias, *buffers)), None

    return jax.lax.scan(step, (hs, factors), jnp.arange(steps), unroll=UNROLL)[0][0]


def backward_loop(
    arguments: Shaped[Array, "T N H4"],
    keep: Float[Array, "T1 N"],
    back: Shaped[Array, "H3 H"],
    bias: Float[Array, " H4"],
    hs: Float[Array, "T1 N H"],
    d_hs: Float[Array, "T N H"],
    interpret: bool = False,
) -> tuple[Shaped[Array, "T N H4"], Float[Array, "N H"]]:
    """Returns derivatives by (the arguments of q, r, z and n; the first state), given those by the states.

    `arguments` do not include the biases, `back` is [Uₙ; Uᵣ; U_z], and `keep` ends with a 0.
    """
    steps, rows, width = d_hs.shape
    d_arguments = jnp.zeros((steps, rows, 4 * width), back.dtype)
    d_h = jnp.zeros((2, rows, width))  # of the current and the following step, alternating
    buffers = [d_arguments, d_h]
    call = ft.partial(_call, rows=rows, width=width, interpret=interpret)
    reads = _chunks(width, 3)[0] // 2
    kernel = call(_backward_step, buffers, aliases={7: 0, 8: 1}, reads=reads)

    def step(buffers, t):
        return tuple(kernel(t[None], arguments, keep, back, bias, hs, d_hs, *buffers)), None

    index = jnp.arange(steps)
    (d_arguments, d_h), _ = jax.lax.scan(step, tuple(buffers), index, reverse=True, unroll=UNROLL)
    z = slice(2 * width, 3 * width)
    z = _sigmoid(arguments[0, :, z].astype(jnp.float32) + bias[None, z])
    d_state = d_h[0] * z + _dot(d_arguments[0, :, : 3 * width], back)
    return d_arguments, jnp.where(keep[0][:, None] > 0, d_state, 0.0)


def _chunks(width, factors):
    """Returns (number, size) of the chunks of an inner axis with `factors` times `width` numbers."""
    size = min(width // 2, CHUNK)
    return factors * width // size, size


def _call(kernel, buffers, aliases, reads, rows, width, interpret):
    """Returns a kernel that writes into `buffers`, its last arguments. `reads` is the number of chunks it reads."""
    assert triton is not None
    return pl.pallas_call(
        ft.partial(kernel, width),
        out_shape=[jax.ShapeDtypeStruct(b.shape, b.dtype) for b in buffers],
        grid=(rows // ROWS, width // COLUMNS),
        input_output_aliases=aliases,
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=1 + min(reads, AHEAD)),
        interpret=interpret,
    )


def _here(width):
    """Returns this program's (rows, function from k to its columns in the k-th of several concatenated arrays)."""
    start = pl.program_id(1) * COLUMNS
    columns = lambda k: pl.ds(k * width + start, COLUMNS)  # noqa: E731
    return pl.ds(pl.program_id(0) * ROWS, ROWS), columns


def _dot(a, b):
    return jnp.dot(a, b, preferred_element_type=jnp.float32)


def _sigmoid(x):
    return 1 / (1 + jnp.exp(-x))


def _sums(count):
    return (jnp.zeros((ROWS, COLUMNS)),) * count


def _forward_step(width, t, inputs, keep, weight, bias, _, __, hs, factors):
    t = t[0]
    rows, columns = _here(width)
    chunks, size = _chunks(width, 1)
    kept, kept_next = keep[t, rows][:, None] > 0, keep[t + 1, rows][:, None] > 0
    before = jnp.where(kept, hs[t, rows, columns(0)], 0.0)
    b_q, b_r, b_z, b_n = (bias[columns(k)][None] for k in range(4))
    x_r, x_z, x_n = (inputs[t, rows, columns(k)] for k in range(3))

    def add(i, sums):
        part = pl.ds(i * size, size)
        h = factors[t, rows, part]
        return tuple(s + _dot(h, weight[part, columns(k)]) for k, s in enumerate(sums))

    r, z, q = jax.lax.fori_loop(0, chunks, add, _sums(3))
    r, z = _sigmoid(x_r + b_r + r), _sigmoid(x_z + b_z + z)
    n = jnp.tanh(x_n + b_n + r * (q + b_q))
    h = n + z * (before - n)
    hs[t + 1, rows, columns(0)] = h
    factors[t + 1, rows, columns(0)] = jnp.where(kept_next, h, 0.0).astype(factors.dtype)


def _backward_step(width, t, arguments, keep, back, bias, hs, d_hs, _, __, d_arguments, d_states):
    """Computes dhₜ = d_outₜ + dhₜ₊₁·zₜ₊₁ + [dhₜ₊₁·∂q, dhₜ₊₁·∂r, dhₜ₊₁·∂z] [Uₙ; Uᵣ; U_z], and recomputes the gates."""
    t = t[0]
    rows, columns = _here(width)
    chunks, size = _chunks(width, 3)
    # The last step has no following step, and `keep` masks what is read: any row that is not being written will do.
    after = (t + 1) % d_arguments.shape[0]

    def argument(t, k):
        return arguments[t, rows, columns(k)].astype(jnp.float32) + bias[columns(k)][None]

    kept, kept_later = keep[t, rows][:, None] > 0, keep[t + 1, rows][:, None] > 0
    before = jnp.where(kept, hs[t, rows, columns(0)], 0.0)
    beside = d_states[(t + 1) % 2, rows, columns(0)] * _sigmoid(argument(after, 2))
    beside = jnp.where(kept_later, beside, 0.0) + d_hs[t, rows, columns(0)]
    q, r, z, n = (argument(t, k) for k in range(4))
    r, z = _sigmoid(r), _sigmoid(z)
    n = jnp.tanh(n + r * q)
    by_n = (1 - z) * (1 - n * n)
    slopes = by_n * r, by_n * q * r * (1 - r), (before - n) * z * (1 - z), by_n

    def add(i, sums):  # two independent sums shorten the dependency chain
        parts = [pl.ds((2 * i + j) * size, size) for j in range(2)]
        later = [d_arguments[after, rows, part] for part in parts]
        return tuple(
            s + _dot(d, back[part, columns(0)])
            for s, d, part in zip(sums, later, parts, strict=True)
        )

    through = sum(jax.lax.fori_loop(0, chunks // 2, add, _sums(2)))
    d_h = jnp.where(kept_later, through, 0.0) + beside
    # Storing d_h converts it to the layout of its factors below; otherwise Triton would convert the factors.
    d_states[t % 2, rows, columns(0)] = d_h
    for k, slope in enumerate(slopes):
        d_arguments[t, rows, columns(k)] = (d_h * slope).astype(d_arguments.dtype)
