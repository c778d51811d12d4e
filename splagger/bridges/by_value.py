"""What the JAX environments of other libraries have in common: values that identify them, and strong types."""

import dataclasses
import functools as ft
import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class ByValue:
    """A pytree of numbers and arrays that is compared and hashed by its content, so that it can be static."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @ft.cached_property
    def digest(self) -> str:
        """A digest of the structure, and of every array with its shape and type."""
        leaves, structure = jax.tree.flatten(self.value)
        found = hashlib.sha256(repr(structure).encode())
        for leaf in map(np.asarray, leaves):
            found.update(f"{leaf.shape}{leaf.dtype.str}".encode())
            found.update(np.ascontiguousarray(leaf).data)
        return found.hexdigest()

    def describe(self) -> dict[str, str]:
        """Returns the content as text, and the digest if long arrays are abbreviated in the text."""
        text = repr(self.value)
        return {"params": text} | ({"arrays": self.digest} if "..." in text else {})


def strongly_typed(tree: Any) -> Any:
    """Returns a pytree whose leaves are strongly typed arrays; Python numbers are weakly typed in JAX."""

    def strong(leaf):
        leaf = jnp.asarray(leaf)
        return jax.lax.convert_element_type(leaf, leaf.dtype)

    return jax.tree.map(strong, tree)
