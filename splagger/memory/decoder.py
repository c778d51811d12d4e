"""The decoder, which predicts the reward or the next state of any step of a task from a latent."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from splagger.errors import SettingError
from splagger.memory.embedding import EmbeddingSizes, Transition
from splagger.nn import MLP, Linear
from splagger.spaces import ActionSpace
from splagger.vision import NO_IMAGES, Vision


class Decoder(eqx.Module):
    """A network that predicts r from (z, s, a, s'), or s' from (z, s, a), with its own embeddings (PEARL-vari)."""

    state: Linear
    action: Linear
    network: MLP
    space: ActionSpace = eqx.field(static=True)
    predicts_state: bool = eqx.field(static=True)
    vision: Vision = NO_IMAGES

    @classmethod
    def create(
        cls,
        key: Key[Array, ""],
        latent_size: int,
        obs_size: int,
        space: ActionSpace,
        sizes: EmbeddingSizes,
        hidden: tuple[int, ...],
        predicts_state: bool,
        vision: Vision = NO_IMAGES,
    ) -> "Decoder":
        if predicts_state and vision.networks:
            raise SettingError(
                "network.decoder_predicts_state does not support observations with images"
            )
        state_key, action_key, network_key = jr.split(key, 3)
        states = 1 if predicts_state else 2
        inputs = latent_size + states * sizes.state + sizes.action
        outputs = obs_size if predicts_state else 1
        return cls(
            Linear.create(state_key, vision.output_size(obs_size), sizes.state),
            Linear.create(action_key, space.size, sizes.action),
            MLP.create(network_key, (inputs, *hidden, outputs), jax.nn.relu),
            space,
            predicts_state,
            vision,
        )

    def error(self, latent: Float[Array, " z"], step: Transition) -> Float[Array, ""]:
        """Returns the squared error of the prediction for one step, averaged over dimensions."""
        state = jax.nn.relu(self.state(self.vision(step.obs)))
        action = jax.nn.relu(self.action(self.space.encode(step.action)))
        if self.predicts_state:
            predicted = self.network(jnp.concatenate([latent, state, action]))
            return jnp.mean((predicted - step.next_obs) ** 2)
        after = jax.nn.relu(self.state(self.vision(step.next_obs)))
        predicted = self.network(jnp.concatenate([latent, after, action, state]))
        return (predicted[0] - step.reward) ** 2
