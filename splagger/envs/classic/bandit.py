"""Bernoulli bandits: find the arm that pays most often (Duan et al., 2016; Wang et al., 2016)."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

from splagger.envs.protocol import EnvSpec, Step
from splagger.ranges import Several, Steps, check_fields
from splagger.spaces import Discrete


class BanditState(NamedTuple):
    """How often each arm was pulled and how often it paid. Only pictures show them."""

    pulled: Int[Array, " arms"]
    paid: Int[Array, " arms"]


class Bandit(eqx.Module):
    """Each of `arms` arms pays 1 with its own probability, else 0. An episode has `pulls` pulls.

    The task is the probabilities, each from U(0, 1). The observation is the constant 1: actions and rewards are
    all that an agent can learn from.

    >>> Bandit(arms=5).spec.space
    Discrete(size=5)
    """

    arms: Several = eqx.field(static=True, default=5)
    pulls: Steps = eqx.field(static=True, default=100)

    def __check_init__(self):
        check_fields(self, "Bandit: ")

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("Bandit", 1, Discrete(self.arms), self.pulls, 0.0, 1.0, fixed_length=True)

    def sample_task(self, key: Key[Array, ""]) -> Float[Array, " arms"]:
        return jr.uniform(key, (self.arms,))

    def reset(self, key: Key[Array, ""], task: Float[Array, " arms"]):
        none = jnp.zeros(self.arms, jnp.int32)
        return BanditState(none, none), jnp.ones(1)

    def step(self, key: Key[Array, ""], task, state: BanditState, action: Int[Array, ""]):
        pays = jr.uniform(key) < task[action]
        pulled, paid = state.pulled.at[action].add(1), state.paid.at[action].add(pays)
        done = pulled.sum() == self.pulls
        step = Step(jnp.ones(1), pays.astype(jnp.float32), jnp.zeros((), bool), done)
        return BanditState(pulled, paid), step

    def render(self, task, state: BanditState, episode: int = 0, episodes: int = 1):
        from splagger.envs.classic import pictures

        return pictures.bandit(task.tolist(), state.pulled.tolist(), state.paid.tolist())
