"""The embedding of one transition: (s, a, r, s') → x."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key, Num

from splagger.nn import Linear, Preparable
from splagger.ranges import Size
from splagger.spaces import ActionSpace
from splagger.vision import NO_IMAGES, Vision


class Transition(NamedTuple):
    """One step of a task: observation, action, reward and next observation."""

    obs: Float[Array, "*batch obs"]
    action: Num[Array, "*batch"] | Float[Array, "*batch action"]
    reward: Float[Array, "*batch"]
    next_obs: Float[Array, "*batch obs"]


class EmbeddingSizes(NamedTuple):
    """Sizes of the embeddings of state, action and reward."""

    state: Size = 32
    action: Size = 8
    reward: Size = 8


class Nothing(eqx.Module):
    """An embedding of size 0, for encoders that ignore their inputs."""

    def __call__(self, inputs) -> Float[Array, " 0"]:
        return jnp.zeros(0)


class TransitionEmbedding(Preparable):
    """x = [φ(s); φ(a); φ(r); φ(s')], where each φ is a linear layer with ReLU; s and s' share one.

    If observations contain images, φ(s) is the linear layer of `vision(s)`.

    >>> from splagger.spaces import Discrete
    >>> embed = TransitionEmbedding.create(jr.key(0), 5, Discrete(4), EmbeddingSizes())
    >>> step = Transition(jnp.ones(5), jnp.int32(2), jnp.float32(1), jnp.ones(5))
    >>> embed(step).shape
    (80,)
    """

    state: Linear
    action: Linear
    reward: Linear
    space: ActionSpace = eqx.field(static=True)
    vision: Vision = NO_IMAGES

    @classmethod
    def create(
        cls,
        key: Key[Array, ""],
        obs_size: int,
        space: ActionSpace,
        sizes: EmbeddingSizes,
        vision: Vision = NO_IMAGES,
    ) -> "TransitionEmbedding":
        state_key, action_key, reward_key = jr.split(key, 3)
        return cls(
            Linear.create(state_key, vision.output_size(obs_size), sizes.state),
            Linear.create(action_key, space.size, sizes.action),
            Linear.create(reward_key, 1, sizes.reward),
            space,
            vision,
        )

    @property
    def output_size(self) -> int:
        """The size of x."""
        return sum(
            layer.bias.shape[0] for layer in (self.state, self.action, self.reward, self.state)
        )

    def __call__(self, transition: Transition) -> Float[Array, " x"]:
        return self.prepared()(transition)

    def prepared(self) -> "JoinedEmbedding":
        """Returns the same function as one affine map of [s; a; r; s'], with one matmul instead of three."""
        layers = self.state, self.action, self.reward, self.state
        weight = jax.scipy.linalg.block_diag(*(layer.weight for layer in layers))
        return JoinedEmbedding(
            Linear(weight, jnp.concatenate([layer.bias for layer in layers])),
            self.space,
            self.vision,
        )


class JoinedEmbedding(eqx.Module):
    """x = ReLU(W [s; a; r; s'] + b), where s and s' are what `vision` returns for the observations."""

    linear: Linear
    space: ActionSpace = eqx.field(static=True)
    vision: Vision

    def __call__(self, transition: Transition) -> Float[Array, " x"]:
        obs, action, reward, next_obs = transition
        obs, next_obs, action = self.vision(obs), self.vision(next_obs), self.space.encode(action)
        return jax.nn.relu(self.linear(jnp.concatenate([obs, action, reward[None], next_obs])))
