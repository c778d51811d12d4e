"""Action spaces: the size of an action, its encoding for a network, and its sampling noise."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key, Num

from splagger.errors import SettingError


@dataclass(frozen=True)
class Discrete:
    """The actions 0 … size-1, encoded as one-hot vectors.

    >>> Discrete(3).encode(jnp.int32(1)).tolist()
    [0.0, 1.0, 0.0]
    """

    size: int
    discrete: ClassVar[bool] = True

    def __post_init__(self):
        if self.size < 2:
            raise SettingError(
                f"a discrete action space must have at least 2 actions, got {self.size}"
            )

    def encode(self, action: Num[Array, ""]) -> Float[Array, " size"]:
        return jax.nn.one_hot(action, self.size)

    def noise(self, key: Key[Array, ""]) -> Float[Array, " size"]:
        """Draws Gumbel noise: the argmax of logits plus this noise is a sample."""
        return jr.gumbel(key, (self.size,))

    def zero(self) -> Array:
        """Returns some valid action, for shapes."""
        return jnp.zeros((), jnp.int32)


@dataclass(frozen=True)
class MultiDiscrete:
    """Several numbers at once: number i is one of 0 … sizes[i]-1. Encoded as one-hot vectors side by side.

    >>> MultiDiscrete((2, 3)).encode(jnp.array([1, 0])).tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0]
    """

    sizes: tuple[int, ...]
    discrete: ClassVar[bool] = True

    def __post_init__(self):
        if not self.sizes or min(self.sizes) < 1:
            raise SettingError(
                f"every number of an action must have at least 1 value, got sizes {self.sizes}"
            )

    @property
    def size(self) -> int:
        """The size of an encoded action."""
        return sum(self.sizes)

    def encode(self, action: Int[Array, " numbers"]) -> Float[Array, " size"]:
        return jnp.concatenate(
            [jax.nn.one_hot(action[i], size) for i, size in enumerate(self.sizes)]
        )

    def noise(self, key: Key[Array, ""]) -> Float[Array, " size"]:
        """Draws Gumbel noise, as `Discrete` does."""
        return jr.gumbel(key, (self.size,))

    def zero(self) -> Array:
        """Returns some valid action, for shapes."""
        return jnp.zeros(len(self.sizes), jnp.int32)


@dataclass(frozen=True)
class Continuous:
    """Vectors of `size` real numbers, which networks take without encoding."""

    size: int
    discrete: ClassVar[bool] = False

    def __post_init__(self):
        if self.size < 1:
            raise SettingError(
                f"a continuous action space must have at least 1 dimension, got {self.size}"
            )

    def encode(self, action: Float[Array, " size"]) -> Float[Array, " size"]:
        return action

    def noise(self, key: Key[Array, ""]) -> Float[Array, " size"]:
        """Draws standard normal noise: mean + std · noise is a sample."""
        return jr.normal(key, (self.size,))

    def zero(self) -> Array:
        """Returns some valid action, for shapes."""
        return jnp.zeros(self.size)


ActionSpace = Discrete | MultiDiscrete | Continuous
