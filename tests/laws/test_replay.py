"""A replay of the rollout reproduces the probabilities with which the agent acted."""

import numpy as np
import pytest

from splagger.envs import MetaEnv, TMaze
from splagger.methods import ROWS
from tests.ppo.probe_envs import TUNABLES, RandomEnds, quick_update, random_state, tiny

MAZE = MetaEnv(TMaze(length=4), 2)  # a task takes 8 steps, a rollout 20: rollouts end inside a task
RANDOM = MetaEnv(RandomEnds(), 2)  # tasks end at any time, in each environment independently


def two_updates(name, env):
    """Returns the metrics of two updates; the second continues from the memories of the first."""
    config = tiny(name, env, steps=20, epochs=1, minibatches=1)
    state, first = quick_update(config, TUNABLES, random_state(config))
    _, second = quick_update(config, TUNABLES, state)
    return first, second


@pytest.mark.parametrize(
    "name, env",
    [(row.name, MAZE) for row in ROWS] + [("splagger", RANDOM)],
    ids=lambda value: value if isinstance(value, str) else value.env.spec.name,
)
def test_the_first_ratio_of_every_update_is_one(name, env):
    for metrics in two_updates(name, env):
        assert metrics["first_ratio_error"] < 1e-5
        assert all(np.isfinite(metric) for metric in metrics.values()), metrics
        assert metrics["entropy"] > 0.01  # the law is trivial for a deterministic policy


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
