"""Action spaces: how many numbers an action is, and how a network sees it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key, Num

from splagger.errors import SettingError


@dataclass(frozen=True)
class Discrete:
    """Actions 0 … size-1; a network sees them one-hot.

    >>> Discrete(3).encode(jnp.int32(1)).tolist()
    [0.0, 1.0, 0.0]
    """

    size: int

    def __post_init__(self):
        if self.size < 2:
            raise SettingError(f"a discrete action space needs at least 2 actions, got {self.size}")

    def encode(self, action: Num[Array, ""]) -> Float[Array, " size"]:
        return jax.nn.one_hot(action, self.size)

    def noise(self, key: Key[Array, ""]) -> Float[Array, " size"]:
        """Gumbel's: added to logits, it makes the largest of them a sample."""
        return jr.gumbel(key, (self.size,))

    def zero(self) -> Array:
        """Some legal action, for shapes."""
        return jnp.zeros((), jnp.int32)


@dataclass(frozen=True)
class Continuous:
    """Vectors of `size` real numbers; a network sees them as they are."""

    size: int

    def __post_init__(self):
        if self.size < 1:
            raise SettingError(
                f"a continuous action space needs at least 1 number, got {self.size}"
            )

    def encode(self, action: Float[Array, " size"]) -> Float[Array, " size"]:
        return action

    def noise(self, key: Key[Array, ""]) -> Float[Array, " size"]:
        """Standard normal: scaled and shifted, it is a sample."""
        return jr.normal(key, (self.size,))

    def zero(self) -> Array:
        """Some legal action, for shapes."""
        return jnp.zeros(self.size)


ActionSpace = Discrete | Continuous
