"""Reward scaling: rewards are divided by the standard deviation of their running discounted sums."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from splagger.nn.scan import recurrence

CLIP = 10.0


class ReturnScale(NamedTuple):
    """The running returns of N environments, and the moments of all past ones."""

    running: Float[Array, " N"]
    mean: Float[Array, ""]
    variance: Float[Array, ""]
    count: Float[Array, ""]

    @classmethod
    def create(cls, envs: int) -> "ReturnScale":
        return cls(jnp.zeros(envs), jnp.float32(0), jnp.float32(1), jnp.float32(1e-4))


def scale_rewards(
    scale: ReturnScale,
    rewards: Float[Array, "T N"],
    task_done: Bool[Array, "T N"],
    discount: float,
):
    """Returns (scale, rewards / √variance of the running return, clipped to ±10).

    Gₜ = γ Gₜ₋₁ + rₜ for each environment, reset after the last reward of a task. The variance at step t is that
    of every G up to and including step t.
    """
    continues = jnp.concatenate([jnp.ones((1, rewards.shape[1])), 1.0 - task_done[:-1]])
    first = rewards[0] + discount * scale.running
    returns = recurrence(discount * continues, rewards.at[0].set(first))
    offsets = returns - scale.mean  # offsets from the old mean, so that sums do not cancel
    count = scale.count + rewards.shape[1] * jnp.arange(1.0, len(rewards) + 1)
    shift = jnp.cumsum(offsets.sum(axis=1)) / count
    squares = scale.variance * scale.count + jnp.cumsum(jnp.square(offsets).sum(axis=1))
    variance = jnp.maximum(squares / count - jnp.square(shift), 0.0)  # negative only by rounding
    scaled = jnp.clip(rewards * jax.lax.rsqrt(variance + 1e-8)[:, None], -CLIP, CLIP)
    running = jnp.where(task_done[-1], 0.0, returns[-1])
    return ReturnScale(running, scale.mean + shift[-1], variance[-1], count[-1]), scaled
