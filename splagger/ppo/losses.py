"""The terms of the PPO objective, as pure elementwise functions with their formula in the docstring."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from splagger.nn.scan import recurrence


def gae(
    reward: Float[Array, "T ..."],
    value: Float[Array, "T ..."],
    last_value: Float[Array, "..."],
    task_done: Bool[Array, "T ..."],
    truncated: Bool[Array, "T ..."],
    discount: float,
    decay: float,
) -> Float[Array, "T ..."]:
    """Returns advantages Aₜ = bₜ (δₜ + γλ mₜ Aₜ₊₁) with δₜ = rₜ + γ mₜ Vₜ₊₁ - Vₜ.

    m = 0 at the end of a *task*: value flows across the episodes of a meta-episode. b = 0 where a time limit
    truncated the episode, because the step is not informative about its action.
    """
    discounts, kept = discount * (1.0 - task_done), 1.0 - truncated
    next_value = jnp.concatenate([value[1:], last_value[None]])
    delta = reward + discounts * next_value - value
    return recurrence(kept * decay * discounts, kept * delta, reverse=True)


def standardize(advantage: Float[Array, "..."]) -> Float[Array, "..."]:
    """(A - mean) / (std + 1e-5)."""
    return (advantage - advantage.mean()) / (advantage.std() + 1e-5)


def surrogate(ratio: Float[Array, "..."], advantage: Float[Array, "..."], clip: float):
    """-min(ρ A, clip(ρ, 1 ± ε) A)."""
    return -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)


def huber(error: Float[Array, "..."]) -> Float[Array, "..."]:
    """½ x² up to 1, |x| - ½ beyond."""
    size = jnp.abs(error)
    return jnp.where(size < 1, 0.5 * size**2, size - 0.5)


def clipped_value_loss(
    value: Float[Array, "..."],
    old_value: Float[Array, "..."],
    target: Float[Array, "..."],
    clip: float,
) -> Float[Array, "..."]:
    """½ max(huber(V - R), huber(V_old + clip(V - V_old, ± ε) - R))."""
    near = old_value + jnp.clip(value - old_value, -clip, clip)
    return 0.5 * jnp.maximum(huber(value - target), huber(near - target))


def explained_variance(prediction: Float[Array, "..."], target: Float[Array, "..."]):
    """1 - Var(R - V) / Var(R): 1 is perfect, 0 is no better than a constant."""
    return 1.0 - jnp.var(target - prediction) / (jnp.var(target) + 1e-8)
