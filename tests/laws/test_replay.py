"""What is learned from is what was done: a replay of the rollout gives back the probabilities acted with."""

import numpy as np
import pytest

from splagger.envs import MetaEnv, TMaze
from splagger.methods import ROWS
from tests.ppo.probe_envs import TUNABLES, StepNoise, quick_update, random_state, tiny

MAZE = MetaEnv(TMaze(length=4), 2)  # a task takes 8 steps, a rollout 20: every second cuts one
CHANCE = MetaEnv(StepNoise(), 2)  # tasks end at any time, and each environment at its own


def two_updates(name, env):
    """Metrics of both, over whole rollouts; the second goes on with what the first remembered."""
    config = tiny(name, env, steps=20, epochs=1, minibatches=1)
    state, first = quick_update(config, TUNABLES, random_state(config))
    _, second = quick_update(config, TUNABLES, state)
    return first, second


@pytest.mark.parametrize(
    "name, env",
    [(row.name, MAZE) for row in ROWS] + [("splagger", CHANCE)],
    ids=lambda value: value if isinstance(value, str) else value.env.spec.name,
)
def test_the_first_ratio_of_every_update_is_one(name, env):
    for metrics in two_updates(name, env):
        assert metrics["first_ratio_error"] < 1e-5
        assert all(np.isfinite(metric) for metric in metrics.values()), metrics
        assert metrics["entropy"] > 0.01  # the law says little of a policy that has no choice


@pytest.mark.parametrize("noise", ["fresh", "none"])
def test_other_noise_than_the_rollouts_is_another_policy(noise):
    config = tiny("pearl", MAZE, steps=20, epochs=1, minibatches=1, update_noise=noise)
    _, metrics = quick_update(config, TUNABLES, random_state(config))
    assert metrics["first_ratio_error"] > 1e-3
    config = tiny("splagger", MAZE, steps=20, epochs=1, minibatches=1, update_noise=noise)
    _, metrics = quick_update(config, TUNABLES, random_state(config))
    assert metrics["first_ratio_error"] < 1e-5  # its latent is not sampled


def test_an_unknown_noise_is_refused():
    with pytest.raises(ValueError, match="update_noise must be one of stored, fresh, none"):
        tiny("pearl", MAZE, update_noise="zero")
