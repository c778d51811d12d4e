"""T-Mazes: tasks, signals, noise, doors and invalid settings."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.envs import TMaze

LATENT = TMaze(signals=(), noise_up=0.7, noise_down=0.5)
VARIANTS = [TMaze(), TMaze(signals=(1, 50)), LATENT]
COUNT, EPISODES = 4096, 256


def chi_square(counts):
    expected = np.mean(counts)
    return ((counts - expected) ** 2 / expected).sum()


@partial(jax.jit, static_argnums=0)
def episodes(env):
    """Plays one episode per task with random actions; returns tasks, first observations and steps."""

    def run(key):
        task_key, reset_key, act_key, step_key = jr.split(key, 4)
        task = env.sample_task(task_key)
        state, obs = env.reset(reset_key, task)
        actions = jr.randint(act_key, (env.length,), 0, 4)

        def step(state, draws):
            state, out = env.step(draws[0], task, state, draws[1])
            return state, (out, env.observe(task, state))

        _, (out, observed) = jax.lax.scan(step, state, (jr.split(step_key, env.length), actions))
        return task, obs, out, observed, actions

    return jax.vmap(run)(jr.split(jr.key(0), EPISODES))


def observations(env):
    """Returns (tasks, observations o_0 … o_length, steps, actions) as NumPy arrays."""
    task, first, out, _, actions = jax.device_get(episodes(env))
    return task, np.concatenate([first[:, None], out.obs], 1), out, actions


@pytest.mark.parametrize("env", VARIANTS, ids=str)
def test_tasks_are_equally_likely(env):
    tasks = jax.jit(jax.vmap(env.sample_task))(jr.split(jr.key(0), COUNT))
    columns = np.column_stack([tasks.door_up, tasks.signals])
    kinds, counts = np.unique(columns, axis=0, return_counts=True)
    assert len(kinds) == max(2, 2 ** len(env.signals))
    assert chi_square(counts) < 21  # exceeded with probability 1e-4 for 3 degrees of freedom


def test_one_signal_is_the_door_and_two_are_compared():
    for env, rule in [
        (TMaze(), lambda s: s[:, 0] == 1),
        (VARIANTS[1], lambda s: s[:, 0] != s[:, 1]),
    ]:
        tasks = jax.jit(jax.vmap(env.sample_task))(jr.split(jr.key(1), 64))
        np.testing.assert_array_equal(tasks.door_up, rule(tasks.signals))


@pytest.mark.parametrize("env", VARIANTS, ids=str)
def test_start_signals_and_end_are_observed_at_their_cells(env):
    task, obs, _, _ = observations(env)
    cells = np.arange(env.length + 1).clip(max=env.length - 1)[None].repeat(EPISODES, 0)
    np.testing.assert_array_equal(obs[..., 0], cells == 0)
    np.testing.assert_array_equal(obs[..., 2], cells == 99)
    expected = np.zeros_like(obs[..., 1])
    for i, cell in enumerate(env.signals):
        expected[:, cell] = task.signals[:, i]
    np.testing.assert_array_equal(obs[..., 1], expected)


@pytest.mark.parametrize("env", [*VARIANTS, TMaze(length=2)], ids=str)
def test_the_decision_is_made_on_the_last_cell_and_only_there(env):
    task, obs, out, actions = observations(env)
    last = env.length - 1
    assert obs[:, last, 2].all()
    np.testing.assert_array_equal(out.reward[:, :last], 0)
    np.testing.assert_array_equal(out.terminated[:, :last], False)
    np.testing.assert_array_equal(out.terminated[:, last], True)
    chose_up = np.isin(actions[:, last], [0, 2])
    np.testing.assert_array_equal(out.reward[:, last], np.where(chose_up == task.door_up, 4, -3))
    assert not out.truncated.any()


@pytest.mark.parametrize("action", range(4))
@pytest.mark.parametrize("position", [0, 3])
def test_every_action_moves_forward_until_the_end(action, position):
    env = TMaze(length=5)
    task = env.sample_task(jr.key(0))
    state, _ = env.reset(jr.key(1), task)
    state = state._replace(position=jnp.int32(position))
    state, _ = env.step(jr.key(2), task, state, jnp.int32(action))
    assert state.position == position + 1


@pytest.mark.parametrize("env", VARIANTS, ids=str)
def test_noise_is_one_or_minus_one_with_the_probability_of_the_task(env):
    task, obs, _, _ = observations(env)
    noise = obs[..., 3]
    np.testing.assert_array_equal(np.abs(noise), 1)
    for up, probability in [(True, env.noise_up), (False, env.noise_down)]:
        plus = noise[task.door_up == up] == 1
        error = (probability * (1 - probability) / plus.size) ** 0.5
        assert plus.mean() == pytest.approx(probability, abs=4 * error)
        np.testing.assert_allclose(plus.mean(0), probability, atol=5 * error * plus.shape[1] ** 0.5)


@pytest.mark.parametrize("lag", [1, 2, 50])
def test_noise_is_independent_at_every_step(lag):
    _, obs, _, _ = observations(TMaze())
    noise = obs[..., 3]
    product = noise[:, lag:] * noise[:, :-lag]
    assert abs(product.mean()) < 4 / product.size**0.5
    across = noise[1:] * noise[:-1]
    assert abs(across.mean()) < 4 / across.size**0.5


def test_noise_can_be_deterministic():
    task, obs, _, _ = observations(TMaze(length=4, signals=(), noise_up=1.0, noise_down=0.0))
    expected = np.where(task.door_up, 1.0, -1.0)[:, None].repeat(5, 1)
    np.testing.assert_array_equal(obs[..., 3], expected)


@pytest.mark.parametrize("env", VARIANTS, ids=str)
def test_observe_equals_the_observation_of_the_step(env):
    _, _, out, observed, _ = episodes(env)
    np.testing.assert_array_equal(out.obs, observed)


def test_rewards_are_settings():
    env = TMaze(length=2, reward_right=1.0, reward_wrong=-0.5)
    _, _, out, _ = observations(env)
    assert set(out.reward[:, -1].tolist()) == {1.0, -0.5}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 1}, "length must be at least 2, got 1"),
        (
            {"length": 5, "signals": (5,)},
            r"signals must be different cells from 0 to 4, got \(5,\)",
        ),
        ({"signals": (-1,)}, r"signals .* got \(-1,\)"),
        ({"signals": (1, 1)}, r"signals must be different cells .* got \(1, 1\)"),
        ({"noise_up": 1.2}, "noise_up must be between 0 and 1, got 1.2"),
        ({"noise_down": -0.1}, "noise_down must be between 0 and 1, got -0.1"),
        ({"noise_down": float("nan")}, "noise_down must be between 0 and 1, got nan"),
    ],
)
def test_invalid_mazes_are_refused_by_class_field_and_value(settings, message):
    with pytest.raises(ValueError, match=f"^TMaze: {message}"):
        TMaze(**settings)
