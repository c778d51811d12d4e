"""Comparison of pytrees of arrays."""

import jax
import numpy as np


def assert_close(actual, expected, rtol=1e-5, atol=1e-6):
    """Asserts that both trees have the same structure and that all leaves are close."""
    actual_leaves, actual_tree = jax.tree.flatten(actual)
    expected_leaves, expected_tree = jax.tree.flatten(expected)
    assert actual_tree == expected_tree, f"{actual_tree} is not {expected_tree}"
    for a, b in zip(actual_leaves, expected_leaves, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)
