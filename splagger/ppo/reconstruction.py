"""Training the memory by reconstruction of past trajectories, with a KL penalty (PEARL-vari)."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

from splagger.agent import Agent
from splagger.memory import Transition
from splagger.policy.latent import gaussian_kl
from splagger.ppo.buffer import Buffer, sample
from splagger.ppo.settings import PPOConfig


def beliefs(agent: Agent, steps: Transition) -> Float[Array, "L1 out"]:
    """Returns the memory's output before a trajectory and after each of its steps."""
    start = agent.start()
    no_resets = jnp.zeros(steps.reward.shape[0], bool)
    _, outputs = agent.memory.unroll(start, steps, no_resets)
    return jnp.concatenate([start.output[None], outputs])


def belief_kl(agent: Agent, outputs: Float[Array, "T out"], first) -> Float[Array, " T"]:
    """Returns KL(qₜ ‖ qₜ₋₁), with N(0, I) in place of qₜ₋₁ at `first` steps; 0 at t = 0 if it is not first."""
    previous = jnp.concatenate([outputs[:1], outputs[:-1]])
    prior = agent.latent.prior(outputs[0])
    previous = jnp.where(first[:, None], prior, previous)
    return jax.vmap(agent.latent.kl)(outputs, previous)


def trajectory_loss(
    agent: Agent, config: PPOConfig, steps: Transition, length: Int[Array, ""], key: Key[Array, ""]
) -> Float[Array, ""]:
    """Returns the summed error of decoding random steps from random beliefs, plus the weighted mean KL."""
    assert agent.decoder is not None, "only agents with a decoder are trained by reconstruction"
    decoder_error = agent.decoder.error
    time_key, step_key, noise_key = jr.split(key, 3)
    outputs = beliefs(agent, steps)
    horizon = outputs.shape[0] - 1
    times = jr.randint(time_key, (config.beliefs,), 0, length + 1)
    chosen = jr.randint(step_key, (config.beliefs, config.decoded or horizon), 0, length)
    mean, log_variance = jnp.split(outputs[times], 2, axis=1)
    latents = mean + jnp.exp(0.5 * log_variance) * jr.normal(noise_key, mean.shape)

    def decoding_error(latent, chosen):
        """Returns the summed error of one belief over the steps that it decodes."""
        picked = jax.tree.map(lambda leaf: leaf[chosen], steps)
        return jax.vmap(decoder_error, in_axes=(None, 0))(latent, picked).sum()

    previous = jnp.concatenate([jnp.zeros_like(outputs[:1]), outputs[:-1]])
    kl = jax.vmap(gaussian_kl)(outputs[times], previous[times]).mean()
    weight = config.reconstruction_kl_weight * config.kl_terms
    return jax.vmap(decoding_error)(latents, chosen).sum() + weight * kl


def reconstruction_loss(
    agent: Agent, config: PPOConfig, buffer: Buffer, key: Key[Array, ""]
) -> Float[Array, ""]:
    """Returns the mean loss of a few trajectories; 0 while none is complete."""
    sample_key, loss_key = jr.split(key)
    steps, lengths, weights = sample(buffer, config.trajectories, sample_key)
    keys = jr.split(loss_key, config.trajectories)
    one = lambda steps, length, key: trajectory_loss(agent, config, steps, length, key)  # noqa: E731
    losses = jax.vmap(one)(steps, jnp.maximum(lengths, 1), keys)
    return jnp.sum(losses * weights) / jnp.maximum(weights.sum(), 1.0)
