"""Conversion between trees of arrays and flat dictionaries from names to numpy arrays."""

import functools as ft
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

_name = ft.partial(jax.tree_util.keystr, simple=True, separator=".")


def named_leaves(tree: Any, prefixes: tuple[str, ...] = ("",)) -> dict[str, np.ndarray]:
    """Returns the leaves of a tree by their path; random keys become plain numbers.

    - `prefixes`: only leaves whose path begins with one of these.
    """

    def plain(leaf):
        return np.asarray(jr.key_data(leaf) if _is_key(leaf) else leaf)

    named = ((_name(path), leaf) for path, leaf in _leaves(tree))
    return {name: plain(leaf) for name, leaf in named if name.startswith(prefixes)}


def named_shapes(tree: Any) -> dict[str, np.ndarray]:
    """Returns zeros with the names, shapes and types of `named_leaves`, without allocating memory."""

    def plain(leaf):
        leaf = jax.eval_shape(jr.key_data, leaf) if _is_key(leaf) else leaf
        return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)

    return {_name(path): plain(leaf) for path, leaf in _leaves(tree)}


def from_named_leaves(example: Any, leaves: dict[str, np.ndarray]) -> Any:
    """Inverts `named_leaves` for a tree like `example`; raises a ValueError that names the first mismatch."""
    expected = named_shapes(example)
    check_shapes(expected, leaves)
    stored = iter([leaves[name] for name in expected])

    def fill(template):
        if not template.size:
            return jnp.zeros(template.shape, template.dtype)
        return jr.wrap_key_data(jnp.asarray(next(stored))) if _is_key(template) else next(stored)

    return jax.tree.map(fill, example)


def check_shapes(expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Raises a ValueError that names the first of `expected` that `found` lacks or has in another shape or type."""
    for name, array in expected.items():
        other = found.get(name)
        if other is None or (other.shape, other.dtype) != (array.shape, array.dtype):
            kind = "nothing" if other is None else f"{other.dtype}{list(other.shape)}"
            raise ValueError(f"{name} must be {array.dtype}{list(array.shape)}, got {kind}")


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    """(path, leaf) of every leaf that has elements: Orbax does not store empty arrays."""
    return [(p, leaf) for p, leaf in jax.tree_util.tree_flatten_with_path(tree)[0] if leaf.size]
