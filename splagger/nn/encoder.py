"""The interface of sequence encoders, and of modules that can do part of their work once before a loop."""

from abc import abstractmethod
from typing import Any, TypeVar

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float

Tree = TypeVar("Tree")


class AbstractEncoder(eqx.Module):
    """Encodes x₁ … x_T as e₁ … e_T, one step at a time or a whole sequence at once.

    `unroll` must equal repeated `step`. A reset empties the state *before* the step.
    """

    @property
    @abstractmethod
    def input_size(self) -> int:
        """The size of one input; 0 for an encoder that ignores its inputs."""

    @abstractmethod
    def start(self) -> Any:
        """Returns the state before the first step."""

    @abstractmethod
    def step(
        self, state: Any, x: Float[Array, " D"], reset: Bool[Array, ""] | bool
    ) -> tuple[Any, Array]:
        """Returns (state, encoding) after one input."""

    @abstractmethod
    def unroll(
        self, state: Any, xs: Float[Array, "T D"], resets: Bool[Array, " T"]
    ) -> tuple[Any, Array]:
        """Returns (last state, all T encodings) of one sequence."""

    def unroll_batch(
        self, state: Any, xs: Float[Array, "T *batch D"], resets: Bool[Array, "T *batch"]
    ) -> tuple[Any, Array]:
        """Applies `unroll` to a batch of sequences. Encoders with a faster implementation override this."""
        unroll = self.unroll
        for _ in range(1, resets.ndim):
            unroll = jax.vmap(unroll, in_axes=(0, 1, 1), out_axes=(0, 1))
        return unroll(state, xs, resets)


class Preparable(eqx.Module):
    """A module that can do part of its work once, before a loop that calls it many times."""

    @abstractmethod
    def prepared(self) -> Any:
        """Returns the same function with all work done that does not depend on its inputs."""


def prepare(tree: Tree) -> Tree:
    """Returns `tree` with every `Preparable` module in it prepared."""
    is_preparable = lambda node: isinstance(node, Preparable)  # noqa: E731
    return jax.tree.map(
        lambda node: node.prepared() if is_preparable(node) else node, tree, is_leaf=is_preparable
    )
