"""The policy π(a | s, latent): embeddings of both inputs, and a hypernetwork."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from splagger.nn import Linear
from splagger.policy.actor_critic import ActorCritic
from splagger.policy.distributions import Distribution, distribution_of
from splagger.policy.hypernetwork import Hypernetwork
from splagger.spaces import ActionSpace
from splagger.vision import NO_IMAGES, Vision


class HyperPolicy(eqx.Module):
    """A base policy of h = tanh(W s), whose weights a hypernetwork generates from z = tanh(V latent).

    The latent affects the action through the generated weights only. If observations contain images, s is what
    `vision` returns for them.

    >>> from splagger.spaces import Discrete
    >>> policy = HyperPolicy.create(jr.key(0), 5, 24, Discrete(4))
    >>> distribution, value = policy(jnp.ones(5), jnp.ones(24))
    >>> distribution.logits.shape, value.shape
    ((4,), ())
    """

    state_embedding: Linear
    latent_embedding: Linear
    hypernetwork: Hypernetwork
    log_std: Float[Array, " actions"] | None
    space: ActionSpace = eqx.field(static=True)
    vision: Vision = NO_IMAGES

    @classmethod
    def create(
        cls,
        key: Key[Array, ""],
        obs_size: int,
        latent_size: int,
        space: ActionSpace,
        state_embedding: int = 256,
        latent_embedding: int = 25,
        hidden: tuple[int, ...] = (256, 128),
        vision: Vision = NO_IMAGES,
    ) -> "HyperPolicy":
        state_key, latent_key, base_key = jr.split(key, 3)
        base = ActorCritic.create(base_key, state_embedding, hidden, space)
        return cls(
            Linear.create(state_key, vision.output_size(obs_size), state_embedding),
            Linear.create(latent_key, latent_size, latent_embedding),
            Hypernetwork.create(base, latent_embedding),
            None if space.discrete else jnp.zeros(space.size),
            space,
            vision,
        )

    @property
    def numbers(self) -> int:
        """How many numbers of an observation are not pixels."""
        features = self.vision.output_size(self.vision.pixels)
        return self.state_embedding.weight.shape[1] - features

    def __call__(
        self, obs: Float[Array, " obs"], latent: Float[Array, " latent"]
    ) -> tuple[Distribution, Float[Array, ""]]:
        """Returns (distribution over actions, value) of a normalized observation."""
        policy, x = self._policy_and_input(obs, latent)
        numbers, value = policy(x)
        return self._distribution(numbers), value

    def distribution(
        self, obs: Float[Array, " obs"], latent: Float[Array, " latent"]
    ) -> Distribution:
        """Returns the distribution without the value, which halves the work."""
        policy, x = self._policy_and_input(obs, latent)
        return self._distribution(policy.actor(x))

    def evaluate_batch(
        self, obs: Float[Array, "B obs"], latents: Float[Array, "B latent"]
    ) -> tuple[Distribution, Float[Array, " B"]]:
        """Returns (distributions, values) of a batch; equals a vmap of `__call__`, with fewer and larger matmuls."""
        policies, x = self._policies_and_inputs(obs, latents)
        numbers, values = policies(x)
        return jax.vmap(self._distribution)(numbers), values

    def value_batch(
        self, obs: Float[Array, "B obs"], latents: Float[Array, "B latent"]
    ) -> Float[Array, " B"]:
        """Returns the values of a batch, without the distributions."""
        policies, x = self._policies_and_inputs(obs, latents)
        return policies.critic(x)[:, 0]

    def _policy_and_input(self, obs, latent):
        z, x = self._embed(obs, latent)
        return self.hypernetwork.policy(z), x

    def _policies_and_inputs(self, obs, latents):
        z, x = jax.vmap(self._embed)(obs, latents)
        return self.hypernetwork.policies(z), x

    def _embed(self, obs, latent):
        state = self.state_embedding(self.vision(obs))
        return jnp.tanh(self.latent_embedding(latent)), jnp.tanh(state)

    def _distribution(self, numbers) -> Distribution:
        return distribution_of(self.space, numbers, self.log_std)
