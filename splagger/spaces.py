"""Action spaces: the size of an action, its encoding for a network, and its sampling noise."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key, Num

from splagger.errors import SettingError


@dataclass(frozen=True)
class Discrete:
    """The actions 0 … size-1, encoded as one-hot vectors.

    >>> Discrete(3).encode(jnp.int32(1)).tolist()
    [0.0, 1.0, 0.0]
    """

    size: int

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
class Continuous:
    """Vectors of `size` real numbers, which networks take without encoding."""

    size: int

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


ActionSpace = Discrete | Continuous
