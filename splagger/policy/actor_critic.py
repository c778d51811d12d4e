"""The base policy: two small networks over an embedded observation."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from splagger.nn import MLP, Linear
from splagger.nn.initializers import kaiming_uniform, normc, orthogonal
from splagger.spaces import ActionSpace, Discrete

TANH_GAIN = 5 / 3


class ActorCritic(eqx.Module):
    """Embedded observation → (numbers of the action distribution, value).

    The networks' layers are anything callable: plain `Linear`s, or layers a hypernetwork makes.
    """

    actor: MLP
    critic: MLP

    @classmethod
    def create(
        cls, key: Key[Array, ""], inputs: int, hidden: tuple[int, ...], space: ActionSpace
    ) -> "ActorCritic":
        actor_key, critic_key = jr.split(key)
        small = lambda key, shape: orthogonal(key, shape, gain=0.01)  # noqa: E731
        head = small if isinstance(space, Discrete) else normc
        return cls(
            _network(actor_key, (inputs, *hidden, space.size), head),
            _network(critic_key, (inputs, *hidden, 1), kaiming_uniform),
        )

    def __call__(
        self, x: Float[Array, "*batch x"]
    ) -> tuple[Float[Array, "*batch a"], Float[Array, "*batch"]]:
        return self.actor(x), self.critic(x)[..., 0]


def _network(key, sizes, head: Callable) -> MLP:
    """tanh layers initialized by normc with gain 5/3, then the head; all biases zero."""

    def layer(index, key):
        shape = sizes[index + 1], sizes[index]
        last = index == len(sizes) - 2
        weight = head(key, shape) if last else normc(key, shape, TANH_GAIN)
        return Linear(weight, jnp.zeros(shape[0]))

    keys = jr.split(key, len(sizes) - 1)
    return MLP(tuple(layer(i, k) for i, k in enumerate(keys)))
