"""Compares the terms of the objective with plain loops and worked examples, and checks the clipping."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import MetaEnv, TMaze
from splagger.memory import Transition
from splagger.ppo import losses
from splagger.ppo.reconstruction import belief_kl, trajectory_loss
from tests.close import assert_close
from tests.parity.numpy_models import belief_kl_naive, gae_naive, ppo_loss_naive
from tests.ppo.probe_envs import random_state, tiny

gae = jax.jit(losses.gae, static_argnums=(5, 6))
CLIP, MAZE = 0.1, MetaEnv(TMaze(length=4), 2)


def random_case(rng, steps, envs):
    """Returns (reward, value, last value, task ends, truncations) of a random rollout."""
    rates = rng.choice([0.0, 0.1, 0.5, 1.0], 2)
    ended, truncated = (rng.random((steps, envs)) < rate for rate in rates)
    numbers = rng.normal(size=(2, steps, envs)).astype(np.float32)
    return *numbers, rng.normal(size=envs).astype(np.float32), ended, truncated


@pytest.mark.parametrize("steps", [1, 2, 13, 50])
def test_advantages_equal_those_of_a_loop(steps):
    rng = np.random.default_rng(steps)
    for _ in range(30):
        case = random_case(rng, steps, 3)
        assert_close(gae(*case, 0.95, 0.9), gae_naive(*case, 0.95, 0.9)[0], rtol=1e-4, atol=1e-5)


def example(ended=(), truncated=(), reward=(1.0, 0.0, 2.0)):
    """V = ½, 1, 2, then 4; γ = λ = ½."""
    value, flags = jnp.array([0.5, 1.0, 2.0]), jnp.arange(3)
    ends = jnp.isin(flags, jnp.array(ended, int)), jnp.isin(flags, jnp.array(truncated, int))
    return gae(jnp.array(reward), value, jnp.float32(4), *ends, 0.5, 0.5).tolist()


def test_advantages_of_a_worked_example():
    assert example() == [1 + 0.25 * 0.5, 0 + 0.25 * 2, 2]  # δ = 1, 0, 2
    assert example(ended=[1]) == [1 + 0.25 * -1, -1, 2]  # no value after the task: δ₁ = 0 - 1
    assert example(truncated=[1]) == [1, 0, 2]  # step 1 has no advantage, step 0 still uses V₁
    assert example(ended=[2]) == [1, 0, 0]  # δ₂ = 2 - 2, whatever the last value
    assert example(ended=[1], truncated=[1]) == [1, 0, 2]


def test_rewards_affect_earlier_advantages_of_their_task_only():
    ended, zeros = np.isin(np.arange(9), [2, 6]), jnp.zeros(9)
    rest = zeros, jnp.zeros(()), jnp.asarray(ended), jnp.zeros(9, bool), 0.9, 0.8
    influence = np.asarray(jax.jit(jax.jacobian(lambda reward: losses.gae(reward, *rest)))(zeros))
    task = np.cumsum(ended) - ended
    same_task = task[:, None] == task
    distance = np.arange(9) - np.arange(9)[:, None]  # [advantage, reward]
    expected = np.where(same_task & (distance >= 0), 0.72 ** np.maximum(distance, 0), 0)
    assert_close(influence, expected)


def test_the_last_value_counts_unless_the_last_step_ended_a_task():
    rng = np.random.default_rng(0)
    reward, value, _, _, truncated = random_case(rng, 5, 2)
    ended = np.zeros((5, 2), bool)
    ended[-1, 1] = True
    low, high = (
        gae(reward, value, np.full(2, v), ended, truncated & False, 0.9, 0.9) for v in (0.0, 9.0)
    )
    assert (high[:, 0] > low[:, 0]).all()
    np.testing.assert_array_equal(high[:, 1], low[:, 1])


def test_losses_match_the_plain_formulas():
    rng = np.random.default_rng(0)
    for _ in range(20):
        log_prob, old_log_prob, advantage, value, old_value, target, entropy = (
            rng.normal(size=(7, 50)) * np.array([[0.1], [0.1], [1], [1], [0.9], [2], [1]])
        ).astype(np.float32)
        _, policy_loss, value_loss = ppo_loss_naive(
            log_prob, old_log_prob, advantage, value, old_value, target, entropy, CLIP, 0.5, 0.1
        )
        ratio = jnp.exp(log_prob - old_log_prob)
        ours = losses.surrogate(ratio, jnp.asarray(advantage), CLIP).mean()
        assert_close(ours, policy_loss, atol=1e-5)
        ours = losses.clipped_value_loss(*map(jnp.asarray, (value, old_value, target)), CLIP)
        assert_close(ours.mean(), value_loss, rtol=1e-5)


def slope(function, x, *rest):
    return jax.vmap(jax.grad(function))(jnp.asarray(x), *map(jnp.asarray, rest))


def test_a_ratio_that_improved_beyond_the_clip_range_has_no_gradient():
    ratio, advantage = np.float32([0.5, 0.5, 1, 1, 1.5, 1.5]), np.float32([2, -2] * 3)
    gradient = slope(ft.partial(losses.surrogate, clip=CLIP), ratio, advantage)
    np.testing.assert_array_equal(gradient, [-2, 0, -2, 2, 0, 2])


def test_a_value_that_moved_too_far_toward_its_target_has_no_gradient():
    old, target = np.zeros(4, np.float32), np.float32([2, -2, 2, -2])
    value = np.float32([0.5, -0.5, -0.5, 0.5])  # toward, toward, away, away
    gradient = slope(ft.partial(losses.clipped_value_loss, clip=CLIP), value, old, target)
    assert_close(gradient, np.float32([0, 0, -0.5, 0.5]))
    near = slope(ft.partial(losses.clipped_value_loss, clip=CLIP), value / 10, old, target)
    assert_close(near, np.float32([-0.5, 0.5, -0.5, 0.5]))


def test_huber_is_quadratic_up_to_one_and_linear_beyond():
    x = np.linspace(-3, 3, 61, dtype=np.float32)
    assert_close(slope(losses.huber, x), np.clip(x, -1, 1))
    assert_close(losses.huber(jnp.array([0.0, 0.5, -1.0, 3.0])), jnp.array([0.0, 0.125, 0.5, 2.5]))


def test_standardized_advantages_have_mean_zero_and_deviation_one():
    x = losses.standardize(3 + 7 * jnp.asarray(np.random.default_rng(0).normal(size=(20, 3))))
    assert_close([x.mean(), x.std()], [0.0, 1.0], atol=1e-5)
    np.testing.assert_array_equal(losses.standardize(jnp.full((4,), 5.0)), np.zeros(4))


def test_explained_variance_is_one_for_the_truth_and_zero_for_a_constant():
    target = jnp.asarray(np.random.default_rng(0).normal(size=100))
    explained = ft.partial(losses.explained_variance, target=target)
    cases = [target, target + 5, jnp.full(100, 3.0), target / 2, -target]
    assert_close([explained(x) for x in cases], [1.0, 1.0, 0.0, 0.75, -3.0], atol=1e-5)
    assert np.isfinite(losses.explained_variance(jnp.ones(5), jnp.zeros(5)))


def test_the_divergence_is_from_the_previous_belief():
    config, rng = tiny("pearl", MAZE), np.random.default_rng(0)
    outputs, first = rng.normal(size=(9, 8)).astype(np.float32), np.isin(np.arange(9), [3, 4])
    for flags in (first, first | (np.arange(9) == 0)):
        ours = belief_kl(random_state(config).agent, jnp.asarray(outputs), jnp.asarray(flags))
        expected = belief_kl_naive(outputs[:, :4], outputs[:, 4:], flags)
        assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_steps_after_the_end_of_a_trajectory_do_not_matter():
    config, rng = tiny("pearl-vari", MAZE), np.random.default_rng(0)
    agent, space = random_state(config).agent, MAZE.space
    numbers = rng.normal(size=(8, 11)).astype(np.float32)
    steps = Transition(
        numbers[:, :5], rng.integers(space.size, size=8), numbers[:, 5], numbers[:, 6:]
    )
    loss = jax.jit(lambda s: trajectory_loss(agent, config.ppo, s, jnp.int32(5), jr.key(0)))
    changed = jax.tree.map(lambda x: np.concatenate([x[:5], x[:3]]), steps)
    assert loss(steps) == loss(changed) != loss(jax.tree.map(lambda x: x[::-1], steps))
