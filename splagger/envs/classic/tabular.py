"""Random tabular MDPs: learn transitions and rewards, then act well (Duan et al., 2016)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

from splagger.envs.protocol import EnvSpec, Step
from splagger.ranges import Several, Steps, check_fields
from splagger.spaces import Discrete


class TabularTask(NamedTuple):
    """The probability of each next state, and the mean reward of each action."""

    transitions: Float[Array, "states actions states"]
    rewards: Float[Array, "states actions"]


class TabularState(NamedTuple):
    """The current state and the time."""

    node: Int[Array, ""]
    time: Int[Array, ""]


class TabularMDP(eqx.Module):
    """A random MDP. Transitions are from a flat Dirichlet distribution, mean rewards from N(1, 1).

    A reward is drawn from N(mean, 1). Every episode starts in state 0 and has `horizon` steps. Observation: the
    state, one-hot.

    >>> TabularMDP().spec.obs_size
    10
    """

    states: Several = eqx.field(static=True, default=10)
    actions: Several = eqx.field(static=True, default=5)
    horizon: Steps = eqx.field(static=True, default=10)

    def __check_init__(self):
        check_fields(self, "TabularMDP: ")

    @property
    def spec(self) -> EnvSpec:
        space = Discrete(self.actions)
        return EnvSpec("Tabular MDP", self.states, space, self.horizon, 0.0, 1.0, fixed_length=True)

    def sample_task(self, key: Key[Array, ""]) -> TabularTask:
        transition_key, reward_key = jr.split(key)
        # Normalized exponential variables have a flat Dirichlet distribution.
        weights = jr.exponential(transition_key, (self.states, self.actions, self.states))
        transitions = weights / weights.sum(-1, keepdims=True)
        return TabularTask(transitions, 1 + jr.normal(reward_key, (self.states, self.actions)))

    def reset(self, key: Key[Array, ""], task: TabularTask):
        state = TabularState(jnp.int32(0), jnp.int32(0))
        return state, self.observe(state)

    def step(self, key: Key[Array, ""], task, state: TabularState, action: Int[Array, ""]):
        node_key, reward_key = jr.split(key)
        thresholds = jnp.cumsum(task.transitions[state.node, action])
        drawn = (jr.uniform(node_key) >= thresholds).sum()
        node = jnp.minimum(drawn, self.states - 1)  # the last threshold may be rounded below 1
        reward = task.rewards[state.node, action] + jr.normal(reward_key)
        state = TabularState(node.astype(jnp.int32), state.time + 1)
        ended = state.time == self.horizon
        return state, Step(self.observe(state), reward, jnp.zeros((), bool), ended)

    def observe(self, state: TabularState) -> Float[Array, " states"]:
        return jax.nn.one_hot(state.node, self.states)

    def render(self, task, state: TabularState, episode: int = 0, episodes: int = 1):
        from splagger.envs.classic import pictures

        rewards = task.rewards.tolist()
        return pictures.tabular(rewards, int(state.node), int(state.time), episode + 1, episodes)
