"""What the JAX environments of other libraries have in common: values that identify them, and strong types."""

import dataclasses
import functools as ft
import hashlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# NumPy's defaults, whatever a script has set.
PRINTING: dict[str, Any] = {
    "precision": 8,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 75,
    "suppress": False,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "formatter": None,
    "floatmode": "maxprec",
    "legacy": False,
}


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
        for leaf in map(_as_numpy, leaves):
            found.update(f"{leaf.shape}{leaf.dtype.str}".encode())
            found.update(repr(leaf.tolist()).encode() if leaf.dtype == object else leaf.tobytes())
        return found.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Returns the content as text, and the digest of arrays that the text does not show exactly.

        Content that has no text of its own, such as functions, is returned as it is.
        """
        with np.printoptions(**PRINTING):
            text = repr(self.value)
        if re.search(r" at 0x|<function|\b(frozen)?set\(", text):
            return {"params": self.value}
        exact = all(map(_is_shown, jax.tree.leaves(self.value)))
        return {"params": text} | ({} if exact else {"arrays": self.digest})


def _as_numpy(leaf: Any) -> np.ndarray:
    is_key = str(getattr(leaf, "dtype", "")).startswith("key<")
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def _is_shown(leaf: Any) -> bool:
    """Whether the text of an array shows all of its numbers, with all of their digits."""
    array = _as_numpy(leaf)
    if array.size > PRINTING["threshold"]:
        return False
    if array.dtype.kind != "f" or not isinstance(leaf, np.ndarray | np.generic | jax.Array):
        return array.dtype.kind in "biuf"
    with np.printoptions(**PRINTING | {"linewidth": 10**6}):
        words = np.array2string(array.ravel(), separator=" ").strip("[]").split()
    return np.array_equal(np.array(words, array.dtype), array.ravel(), equal_nan=True)


def strongly_typed(tree: Any) -> Any:
    """Returns a pytree whose leaves are strongly typed arrays; Python numbers are weakly typed in JAX."""

    def strong(leaf):
        leaf = jnp.asarray(leaf)
        return jax.lax.convert_element_type(leaf, leaf.dtype)

    return jax.tree.map(strong, tree)
