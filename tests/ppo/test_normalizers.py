"""Reward scaling equals a loop over single steps, for any division into rollouts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splagger.nn.scan import recurrence
from splagger.ppo.normalizers import ReturnScale, scale_rewards
from tests.close import assert_close
from tests.parity.numpy_models import scaled_rewards_naive

scale_one = jax.jit(scale_rewards, static_argnums=3)
DISCOUNT = 0.9


def scaled(rewards, task_done, steps):
    """Returns (scale, scaled rewards) of consecutive rollouts of `steps` steps."""
    scale, parts = ReturnScale.create(rewards.shape[1]), []
    for start in range(0, len(rewards), steps):
        part = slice(start, start + steps)
        scale, new = scale_one(
            scale, jnp.float32(rewards[part]), jnp.asarray(task_done[part]), DISCOUNT
        )
        parts.append(new)
    return scale, np.concatenate(parts)


def random_rewards(steps, envs, mean=0.0, ends=0.1, seed=0):
    rng = np.random.default_rng(seed)
    return np.float32(mean + rng.normal(size=(steps, envs))), rng.random((steps, envs)) < ends


@pytest.mark.parametrize("steps", [1, 12, 40, 120])
@pytest.mark.parametrize("mean, ends", [(0.0, 0.1), (0.5, 0.0), (-3.0, 1.0), (1000.0, 0.1)])
def test_scaled_rewards_equal_those_of_single_steps(steps, mean, ends):
    rewards, task_done = random_rewards(120, 4, mean, ends)
    expected = scaled_rewards_naive(rewards.astype(float), task_done, DISCOUNT)
    assert_close(scaled(rewards, task_done, steps)[1], expected, rtol=1e-3, atol=1e-4)


def test_scaled_rare_rewards_equal_those_of_single_steps():
    """The rewards start with zeros, so that the first nonzero one is clipped."""
    rewards, task_done = random_rewards(120, 4)
    rewards = np.where(np.arange(120)[:, None] % 30 == 29, rewards, np.float32(0))
    ours = scaled(rewards, task_done, 40)[1]
    expected = scaled_rewards_naive(rewards.astype(float), task_done, DISCOUNT)
    assert_close(ours, expected, rtol=1e-3, atol=1e-4)


def test_zero_rewards_stay_zero():
    scale, ours = scaled(np.zeros((24, 3)), np.zeros((24, 3), bool), 8)
    np.testing.assert_array_equal(ours, np.zeros((24, 3)))
    assert np.isfinite(jnp.append(scale.running, scale.variance)).all() and scale.variance >= 0


@pytest.mark.parametrize("mean, spread", [(2.8, 0.0), (1.11, 0.0), (0.44, 0.0), (10_000.0, 1.0)])
def test_rewards_with_little_spread_are_scaled_by_finite_numbers(mean, spread):
    """Tasks of one step have nearly constant returns, and the variance must not fall below 0."""
    rng = np.random.default_rng(0)
    rewards = mean + spread * rng.normal(size=(1400, 16))
    scale, ours = scaled(rewards, np.ones((1400, 16), bool), 700)
    assert np.isfinite(ours).all() and scale.variance >= 0
    assert (ours > 0).all()


def test_scaled_rewards_keep_their_signs_and_their_bounds():
    rewards, task_done = random_rewards(60, 4)
    rewards[30] *= 1000
    ours = scaled(rewards, task_done, 20)[1]
    np.testing.assert_array_equal(np.sign(ours), np.sign(rewards))
    assert np.abs(ours).max() <= 10 and (np.abs(ours[30]) > 2).any()


def test_the_end_of_a_task_resets_only_its_own_running_return():
    rewards, task_done = np.ones((3, 2)), np.zeros((3, 2), bool)
    task_done[2, 0] = True
    scale, _ = scaled(rewards, task_done, 3)
    assert_close(scale.running, jnp.array([0.0, 1 + 0.9 + 0.81]))
    task_done[:, 0] = [False, True, False]
    assert_close(scaled(rewards, task_done, 3)[0].running, jnp.array([1.0, 1 + 0.9 + 0.81]))


def test_the_last_reward_of_a_task_counts():
    rewards = np.zeros((10, 1))
    rewards[-1] = 5
    scale, _ = scaled(rewards, rewards > 0, 10)
    assert_close([scale.mean, scale.variance], [0.5, 2.25], rtol=1e-3)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_recurrence_equals_its_loop(reverse):
    rng = np.random.default_rng(0)
    decay, x = rng.random((2, 17, 3)).astype(np.float32)
    expected, total = np.zeros((17, 3)), np.zeros(3)
    for t in range(17)[:: -1 if reverse else 1]:
        total = expected[t] = x[t] + decay[t] * total
    assert_close(
        recurrence(*map(jnp.asarray, (decay, x)), reverse), np.float32(expected), rtol=1e-4
    )
