"""The returns of a random policy and of scripted policies in each classic task.

`python -m benchmarks.references` estimates them all, and `splagger.paper_numbers` holds the results.
"""

import functools as ft
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np

from benchmarks.scripted.policies import (
    Gittins,
    Planner,
    Policy,
    SignalReader,
    SweepingPoint,
    Thompson,
    Uniform,
)
from benchmarks.scripted.searching import OPTIMAL_TOURS, KeySearcher, Searcher
from splagger.envs.classic.bandit import Bandit
from splagger.envs.classic.goal_grid import GoalGrid
from splagger.envs.classic.key_to_door import KeyToDoor
from splagger.envs.classic.point_robot import PointRobot
from splagger.envs.classic.tabular import TabularMDP
from splagger.envs.endless import EndlessTMaze
from splagger.envs.meta import MetaEnv


class Estimate(NamedTuple):
    """A mean return per meta-episode and its standard error."""

    mean: float
    error: float


@ft.partial(jax.jit, static_argnums=(0, 1))
def _reset(meta: MetaEnv, count: int, key):
    return jax.vmap(meta.reset)(jr.split(key, count))


@ft.partial(jax.jit, static_argnums=(0, 1))
def _step(meta: MetaEnv, count: int, key, state, action):
    return jax.vmap(meta.step)(jr.split(key, count), state, action)


def meta_returns(meta: MetaEnv, policy: Policy, count: int, seed: int = 0) -> np.ndarray:
    """Plays one meta-episode in each of `count` environments; returns their returns."""
    start_key, key = jr.split(jr.key(seed))
    state = _reset(meta, count, start_key)
    policy.reset(count, seed)
    total, active = np.zeros(count), np.ones(count, bool)
    zero = meta.space.zero()
    for t in range(meta.horizon):
        action = policy.act(np.asarray(state.obs))
        action_array = np.asarray(action, zero.dtype)
        state, out = _step(meta, count, jr.fold_in(key, t), state, action_array)
        reward = np.asarray(out.reward)
        policy.observe(action, reward)
        total += reward * active
        active &= ~np.asarray(out.task_done)
    assert not active.any(), "a meta-episode did not end within its horizon"
    return total


def estimate(meta: MetaEnv, policy: Policy, count: int, seed: int = 0) -> Estimate:
    """Returns the policy's mean return and its standard error."""
    returns = meta_returns(meta, policy, count, seed)
    return Estimate(float(returns.mean()), float(returns.std(ddof=1) / count**0.5))


# environment class → scripted policies, the reference first
POLICIES: dict[type, Callable] = {
    Bandit: lambda env: (Gittins(env.arms, env.pulls), Thompson(env.arms, env.pulls)),
    TabularMDP: lambda env: (Planner(env.states, env.actions, env.horizon),),
    GoalGrid: lambda env: (
        Searcher(env.size, env.start, OPTIMAL_TOURS if env == GoalGrid() else ()),
    ),
    KeyToDoor: lambda env: (KeySearcher(env.size, env.start),),
    PointRobot: lambda env: (SweepingPoint(env.radius, env.speed),),
    EndlessTMaze: lambda env: (SignalReader(), SignalReader(keep_first=True)),
}


def scripted(env) -> tuple[Policy, ...]:
    """Returns the random policy, then the scripted policies of an environment, the reference first."""
    return Uniform(env.spec.space), *POLICIES[type(env)](env)


def label(policy: Policy) -> str:
    """Returns the name of a policy in tables.

    >>> label(SignalReader(keep_first=True)), label(Thompson(2, 3))
    ('first signal', 'Thompson sampling')
    """
    if isinstance(policy, SignalReader):
        return "first signal" if policy.keep_first else "newest signal"
    return LABELS[type(policy)]


LABELS = {
    Uniform: "random",
    Gittins: "Gittins index",
    Thompson: "Thompson sampling",
    Planner: "posterior planning with a bonus",
    Searcher: "systematic search",
    KeySearcher: "systematic search",
    SweepingPoint: "search along the half circle",
}
