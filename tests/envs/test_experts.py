"""Scripted experts reach the known returns in the environments of the registry."""

import functools

import jax
import jax.random as jr
import numpy as np
import pytest

from splagger import ENVS
from splagger.envs import views
from tests import experts

RNG = np.random.default_rng
NAMES = {row.tobytes(): name for row, name in zip(views.sheet(), views.VIEWS, strict=True)}


@functools.cache
def compiled(name):
    """Returns (number of environments, reset, step), compiled once for all experts."""
    meta = ENVS[name].meta
    n = {"t": 2048, "planning": 1024, "mc": 256}[name.split("-")[0]]

    def step(t, state, action):
        keys = jr.split(jr.fold_in(jr.key(1), t), n)
        return jax.vmap(meta.step)(keys, state, action)

    return n, jax.jit(lambda: jax.vmap(meta.reset)(jr.split(jr.key(0), n))), jax.jit(step)


def meta_returns(name, expert, steps=None):
    """Returns the returns of many meta-episodes, all of which must end at the last of `steps`."""
    n, reset, step = compiled(name)
    steps = steps or ENVS[name].meta.horizon
    expert.reset(n)
    state, total = reset(), np.zeros(n)
    for t in range(steps):
        action = expert.act(np.asarray(state.obs)).astype(np.int32)
        state, out = step(t, state, action)
        reward, obs, task_done = map(np.asarray, (out.reward, state.obs, out.task_done))
        expert.observe(action, reward, obs, task_done)
        total += reward
        assert np.all(task_done == (t == steps - 1))
    return total


def assert_mean(returns, expected, largest_error=np.inf):
    """Asserts that the mean is within 4 standard errors, plus rounding, of the expected value."""
    error = returns.std(ddof=1) / len(returns) ** 0.5
    assert error <= largest_error
    assert returns.mean() == pytest.approx(expected, abs=4 * error + 0.005)


def name_view(obs):
    """Returns the name of an image, looked up by its pixels."""
    return NAMES[obs[:300].tobytes()]


@pytest.mark.parametrize(
    ("name", "expert"), [("t-ls", experts.SignalReader), ("t-agreement", experts.AgreementReader)]
)
def test_signals_always_reveal_the_door(name, expert):
    np.testing.assert_array_equal(meta_returns(name, expert()), ENVS[name].best_return)


@pytest.mark.parametrize("name", ["t-ls", "t-latent"])
def test_guessing_the_door_yields_half_a_point_per_episode(name):
    assert_mean(meta_returns(name, experts.Guesser(RNG(0), 4)), 2.0)


def test_the_noise_almost_always_reveals_the_latent_door():
    returns = meta_returns("t-latent", experts.BayesLatent())
    assert_mean(returns, ENVS["t-latent"].best_return, largest_error=0.03)


def test_reading_labels_reaches_the_best_return_in_planning():
    assert_mean(meta_returns("planning", experts.Explorer()), ENVS["planning"].best_return)


@pytest.mark.parametrize("name", ["t-ls-small", "t-ls-demo", "t-agreement-small", "t-latent-small"])
@pytest.mark.parametrize("sign", [0, 1, -1])
def test_small_mazes_need_a_memory(name, sign):
    """No door that depends on the last observation alone earns more than two thirds of the best return."""
    returns = meta_returns(name, experts.NoiseFollower(sign))
    assert returns.mean() < 2 / 3 * 16


@pytest.mark.parametrize("name", ["planning", "planning-noobs"])
def test_sweeping_the_torus_needs_no_labels(name):
    assert_mean(meta_returns(name, experts.Sweeper()), ENVS["planning-noobs"].best_return)


@pytest.mark.parametrize("name", ["planning", "planning-noobs"])
def test_random_moves_find_few_goals(name):
    assert_mean(meta_returns(name, experts.Guesser(RNG(1), 5)), 1.76)


def test_remembering_the_signal_yields_27_4_in_mc_ls():
    returns = meta_returns("mc-ls", experts.MineExpert(name_view, False, RNG(2)), steps=2 * 98)
    np.testing.assert_allclose(returns, ENVS["mc-ls"].best_return, rtol=1e-5)


@pytest.mark.slow
def test_guessing_the_door_yields_20_4_in_mc_ls():
    returns = meta_returns("mc-ls", experts.MineExpert(name_view, True, RNG(3)), steps=2 * 98)
    assert_mean(returns, 20.4)
    np.testing.assert_allclose(np.unique(returns.round(3)), [13.4, 20.4, 27.4], atol=1e-3)
