"""A replay of the rollout reproduces the probabilities with which the agent acted."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import MetaEnv, TMaze
from splagger.methods import ROWS
from splagger.ppo.rollout import collect
from tests.laws.test_methods import PARAMETERS
from tests.ppo.probe_envs import TUNABLES, RandomEnds, quick_update, random_state, tiny

MAZE = MetaEnv(TMaze(length=4), 2)  # a task takes 8 steps, a rollout 20: rollouts end inside a task
RANDOM = MetaEnv(RandomEnds(), 2)  # tasks end at any time, in each environment independently


def two_updates(name, env):
    """Returns the metrics of two updates; the second continues from the memories of the first."""
    config = tiny(name, env, steps=20, epochs=1, minibatches=1)
    state, first = quick_update(config, TUNABLES, random_state(config))
    _, second = quick_update(config, TUNABLES, state)
    return first, second


@ft.partial(jax.jit, static_argnums=0)
def log_probs(config, state):
    """Returns the log-probabilities of two rollouts in a row: as recorded, and from a replay of each."""

    def one(actors, key):
        keys = jr.split(key, config.ppo.steps)
        after, rollout = collect(config.env, state.agent, state.normalizers, actors, keys)
        steps, done = rollout.transitions, rollout.task_done
        _, outputs = state.agent.replay(actors.memory, steps, done, config.env.task_length)
        flat = jax.tree.map(
            lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]),
            (outputs, steps, rollout.noise),
        )
        inputs = flat[0], flat[1].obs, flat[2]
        distributions, _ = state.agent.evaluate_batch(*inputs, state.normalizers)
        replayed = jax.vmap(lambda d, a: d.log_prob(a))(distributions, flat[1].action)
        return after, (rollout.log_prob.ravel(), replayed)

    return jax.lax.scan(one, state.actors, jr.split(jr.key(5), 2))[1]


# One row per encoder and latent; the updates below contain this law for two more. Aggregators do not matter here:
# every replay equals repeated steps, see tests/laws/test_methods.py. `make test-slow` tests all rows.
QUICK = {"rnn", "cnp", "pearl", "transformer", "splagger-lru", "mlstm"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in PARAMETERS],
)
def test_a_replay_reproduces_the_probabilities_of_two_rollouts(name):
    """The second rollout continues from the memories of the first."""
    config = tiny(name, MAZE, steps=20)
    recorded, replayed = log_probs(config, random_state(config))
    np.testing.assert_allclose(replayed, recorded, atol=1e-5)
    assert jnp.ptp(recorded) > 0.01  # the law is trivial for a deterministic policy


# Whole updates: a recurrent memory, and one that is trained by reconstruction. The test above covers the replay of every
# other method; `make test-slow` runs their updates too.
# In `RANDOM`, tests/ppo/test_train.py has an update whose first ratio is one.
LEARNING = ("splagger", "pearl-vari")
CASES = [(name, MAZE) for name in LEARNING]
SLOW = [(row.name, MAZE) for row in ROWS if row.name not in LEARNING] + [("splagger", RANDOM)]


@pytest.mark.parametrize(
    "name, env",
    [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
    ids=lambda value: value if isinstance(value, str) else value.env.spec.name,
)
def test_the_first_ratio_of_every_update_is_one(name, env):
    for metrics in two_updates(name, env):
        assert metrics["first_ratio_error"] < 1e-5
        assert all(np.isfinite(metric) for metric in metrics.values()), metrics
        assert metrics["entropy"] > 0.01  # the law is trivial for a deterministic policy


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["fresh", "none"])
def test_noise_other_than_the_rollouts_changes_the_policy(noise):
    config = tiny("pearl", MAZE, steps=20, epochs=1, minibatches=1, update_noise=noise)
    _, metrics = quick_update(config, TUNABLES, random_state(config))
    assert metrics["first_ratio_error"] > 1e-3
    config = tiny("splagger", MAZE, steps=20, epochs=1, minibatches=1, update_noise=noise)
    _, metrics = quick_update(config, TUNABLES, random_state(config))
    assert metrics["first_ratio_error"] < 1e-5  # its latent is not sampled


def test_an_unknown_update_noise_is_rejected():
    with pytest.raises(ValueError, match="update_noise must be one of stored, fresh, none"):
        tiny("pearl", MAZE, update_noise="zero")
