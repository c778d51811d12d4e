"""Loops over time: prefixes of an associative operation, linear recurrences, and a scan that writes in place."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Tree = TypeVar("Tree")
Results = TypeVar("Results")


def over_axes(function: Callable, axes: int, in_axes=0) -> Callable:
    """Maps `function` over this many leading axes of its arguments; `in_axes` is as in `jax.vmap`."""
    for _ in range(axes):
        function = jax.vmap(function, in_axes=in_axes)
    return function


def scan_unroll() -> int:
    """Returns the loop unrolling factor. Unrolling saves kernel launches on a GPU, but nothing on a CPU."""
    return 1 if jax.default_backend() == "cpu" else 4


def scan_in_place(
    step: Callable[[Tree, Any], tuple[Tree, Results]],
    state: Tree,
    xs: Any,
    ys: Results,
    reverse: bool = False,
) -> tuple[Tree, Results]:
    """Computes the same as `jax.lax.scan`, and writes the results into `ys`, whose leaves are [T, …].

    A scan under vmap moves the time axis to the front, which copies every array that it reads or writes.
    Here time is an index, and arrays keep their layout. Differentiating this loop would bring the copies back.
    """
    length = jax.tree.leaves(ys)[0].shape[0]

    def at(carry, t):
        state, ys = carry
        state, y = step(state, jax.tree.map(lambda x: x[t], xs))
        write = lambda ys, y: jax.lax.dynamic_update_index_in_dim(ys, y, t, 0)  # noqa: E731
        return (state, jax.tree.map(write, ys, y)), None

    index = jnp.arange(length)
    return jax.lax.scan(at, (state, ys), index, reverse=reverse, unroll=scan_unroll())[0]


def prefix_scan(join: Callable[[Tree, Tree], Tree], elements: Tree, reverse: bool = False) -> Tree:
    """Computes x₁, x₁∘x₂, x₁∘x₂∘x₃, … for leaves [T, …]; if `reverse`, x_T, x_T∘x_{T-1}, … from the end.

    `join(a, b)` takes and returns trees with leaves [n, …], where `a` is nearer to the start of the scan.
    About √T blocks are scanned in parallel, then their totals: 2√T sequential steps instead of the T of a
    plain loop, and 2T joins. `jax.lax.associative_scan` has log T steps, but each is compiled separately: it
    takes ten times as long to compile and is not faster for sequences as long as a rollout.
    """
    length = jax.tree.leaves(elements)[0].shape[0]
    blocks = max(1, round(length**0.5))
    size = -(-length // blocks)

    def in_blocks(x):
        x = x[::-1] if reverse else x
        filled = jnp.concatenate(
            [x, jnp.broadcast_to(x[-1:], (blocks * size - length, *x.shape[1:]))]
        )
        return jnp.moveaxis(filled.reshape(blocks, size, *x.shape[1:]), 1, 0)

    def step(total, x):
        total = join(total, x)
        return total, total

    columns = jax.tree.map(in_blocks, elements)  # [size, blocks, …]
    first = jax.tree.map(lambda c: c[0], columns)
    last, within = jax.lax.scan(step, first, jax.tree.map(lambda c: c[1:], columns))
    within = jax.tree.map(lambda f, w: jnp.concatenate([f[None], w]), first, within)

    totals = jax.tree.map(lambda t: t[:, None], last)  # the totals of the blocks
    start = jax.tree.map(lambda t: t[0], totals)
    _, before = jax.lax.scan(step, start, jax.tree.map(lambda t: t[1:-1], totals))
    before = jax.tree.map(lambda s, b: jnp.concatenate([s, b[:, 0]]), start, before)

    if blocks > 1:  # every block but the first continues the blocks before it
        rest = jax.tree.map(lambda w: w[:, 1:], within)
        joined = jax.vmap(join, in_axes=(None, 0))(before, rest)
        within = jax.tree.map(lambda w, j: jnp.concatenate([w[:, :1], j], axis=1), within, joined)

    def in_order(x):
        x = jnp.moveaxis(x, 0, 1).reshape(blocks * size, *x.shape[2:])[:length]
        return x[::-1] if reverse else x

    return jax.tree.map(in_order, within)


def recurrence(
    decays: Float[Array, "T ..."], inputs: Float[Array, "T ..."], reverse: bool = False
) -> Float[Array, "T ..."]:
    """Returns all hₜ = aₜ hₜ₋₁ + bₜ with h₋₁ = 0 by one associative scan; from the end if `reverse`.

    Two steps compose to one of the same form: (a₁, b₁) ∘ (a₂, b₂) = (a₁ a₂, a₂ b₁ + b₂).
    """

    def join(first, second):
        (a, b), (c, d) = first, second
        return a * c, c * b + d

    return prefix_scan(join, (decays, inputs), reverse)[1]


def linear_recurrence(
    decays: Float[Array, "T ..."],
    inputs: Float[Array, "T *state"],
    start: Float[Array, "*state"],
    resets: Bool[Array, "T ..."],
) -> Float[Array, "T *state"]:
    """Returns all hₜ = aₜ hₜ₋₁ + bₜ from `start` on; a reset replaces hₜ₋₁ by 0.

    The state before the first step enters b₁. Batch axes come first, as in `resets`; later axes of `decays` may have
    size 1.

    >>> ones, resets = jnp.ones((3, 1)), jnp.array([False, False, True])
    >>> linear_recurrence(0.5 * ones, ones, 4 * ones[0], resets).ravel().tolist()
    [3.0, 2.5, 1.0]
    """
    decays = jnp.where(jnp.expand_dims(resets, range(resets.ndim, decays.ndim)), 0, decays)
    return recurrence(decays, inputs.at[0].add(decays[0] * start))
