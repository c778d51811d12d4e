"""Functions that recurrent cells share: resets, batches, and the matmuls around their loops over time."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from splagger.nn.gpu.number_types import MatmulTypes, matmul, matmul_types, rounded

Cell = TypeVar("Cell", bound=eqx.Module)
Tree = TypeVar("Tree")


def empty_if(reset: Bool[Array, "..."] | bool, state: Tree) -> Tree:
    """Returns the state, with zeros where a new task begins."""
    return jax.tree.map(lambda s: jnp.where(reset, jnp.zeros_like(s), s), state)


def with_rounded_weights(cell: Cell) -> Cell:
    """Returns the same cell for many steps, with weights in the device's number type: a GPU reads half the bytes."""
    weights = lambda cell: (cell.input_weight, cell.hidden_weight)  # noqa: E731
    dtype = matmul_types().forward
    return eqx.tree_at(weights, cell, [rounded(weight, dtype) for weight in weights(cell)])


def in_rows(loop: Callable, state, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]):
    """Calls `loop(state, xs, resets)` with all batch axes flattened into one, [T, N, …], and restores them."""
    batch = resets.shape[1:]
    rows = lambda x: x.reshape(-1, *x.shape[len(batch) :])  # noqa: E731
    ys = loop(jax.tree.map(rows, state), jax.vmap(rows)(xs), jax.vmap(rows)(resets))
    return jax.tree.map(lambda y: y.reshape(*y.shape[: y.ndim - 2], *batch, y.shape[-1]), ys)


def arguments_again(
    seen: Float[Array, "T N I"], weight: Float[Array, "G I"], types: MatmulTypes
) -> Shaped[Array, "T N G"]:
    """Recomputes the gates' arguments of all steps, without biases: the forward pass does not store them."""
    return jnp.matmul(rounded(seen, types.forward), rounded(weight.T, types.forward))


def affine_gradients(
    d_arguments: Shaped[Array, "T N G"], seen: Float[Array, "T N I"], types: MatmulTypes
) -> tuple[Float[Array, "G I"], Float[Array, " G"]]:
    """Returns the derivatives by weight and bias, given the derivatives by the gates' arguments: one matmul."""
    d_all = d_arguments.reshape(-1, d_arguments.shape[-1])
    d_weight = matmul(d_all.T, seen.reshape(len(d_all), -1), types.backward)
    return d_weight, d_all.astype(jnp.float32).sum(0)
