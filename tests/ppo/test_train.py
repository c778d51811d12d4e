"""The laws of one update: what it changes, what it leaves alone, and what it depends on."""

import functools as ft
from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from splagger import METHODS, Method
from splagger.aggregators import Halves, Softmax, StraightThrough, temperatures
from splagger.aggregators.weighted import LOWEST_TEMPERATURE
from splagger.envs import MetaEnv, TMaze
from splagger.ppo import faults, train
from splagger.ppo.rollout import collect
from tests.close import assert_close
from tests.parity.numpy_models import gae_naive, running_moments_update, scaled_rewards_naive
from tests.ppo.probe_envs import TUNABLES, RandomEnds, quick_update, random_state, tiny

MAZE, RANDOM = MetaEnv(TMaze(length=4), 2), MetaEnv(RandomEnds(), 2)
CONFIG, MASKED = (tiny("splagger", RANDOM, mask_truncated=mask) for mask in (False, True))
ONE_STEP = {"steps": 20, "epochs": 1, "minibatches": 1}
quick_advantages = jax.jit(train.advantages, static_argnums=0)
quick_evaluation = jax.jit(train.evaluation, static_argnums=0)


@ft.cache
def started():
    """Returns (state, actors after the rollout, rollout) of the first part of an update."""
    state = random_state(CONFIG)
    key = jr.split(jr.fold_in(state.key, state.update), 3)[0]
    run = jax.jit(lambda s, keys: collect(RANDOM, s.agent, s.normalizers, s.actors, keys))
    return state, *run(state, jr.split(key, CONFIG.ppo.steps))


@ft.cache
def updated():
    return quick_update(CONFIG, TUNABLES, started()[0])


def differs(a, b):
    """Returns whether each leaf differs."""
    return [not np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True)]


def data(state):
    return state._replace(key=jr.key_data(state.key))


def test_an_update_depends_on_its_state_alone():
    again = quick_update(CONFIG, TUNABLES, started()[0])
    assert not any(differs(*(data(state) for state, _ in (updated(), again))))
    other = started()[0]._replace(key=jr.key(9))
    assert all(differs(updated()[0].agent, quick_update(CONFIG, TUNABLES, other)[0].agent))


def test_a_run_in_a_grid_equals_the_run_alone():
    cases = [(rate, random_state(CONFIG, seed)) for rate, seed in [(1e-3, 0), (1e-2, 0), (1e-3, 1)]]
    rates, states = jax.tree.map(
        lambda *leaves: np.stack(leaves), *((r, data(s)) for r, s in cases)
    )
    states = states._replace(key=jr.wrap_key_data(states.key))
    each = TUNABLES._replace(learning_rate=0, entropy_weight=None, kl_weight=None, temperature=None)
    grid = jax.jit(jax.vmap(ft.partial(train.update, CONFIG), in_axes=(each, 0)))
    for _ in range(2):
        states, metrics = grid(TUNABLES._replace(learning_rate=rates), states)
    for index, (rate, state) in enumerate(cases):
        for _ in range(2):
            state, expected = quick_update(CONFIG, TUNABLES._replace(learning_rate=rate), state)
        grids = data(states), metrics
        picked = jax.tree.map(lambda leaf, index=index: np.asarray(leaf)[index], grids)
        assert_close(picked, (data(state), expected), rtol=2e-4, atol=2e-5)


def test_the_rate_falls_linearly_to_zero():
    """Eighths are exact in binary, so the rate ends at exactly 0 however a compiler rounds 1 - update / updates."""
    annealed = tiny("splagger", RANDOM, updates=8, anneal=True)
    for update, factor in [(0, 1.0), (3, 0.625), (7, 0.125), (8, 0.0)]:
        state = started()[0]._replace(update=jnp.int32(update))
        rated = TUNABLES._replace(learning_rate=factor * TUNABLES.learning_rate)
        ours, expected = (
            quick_update(*case, state)[0].agent for case in ((annealed, TUNABLES), (CONFIG, rated))
        )
        assert_close(ours, expected, rtol=1e-4, atol=1e-6)
        assert any(differs(ours, state.agent)) == (factor > 0)


def values_and_advantages(config):
    state, actors, rollout = started()
    _, batch = quick_advantages(config.ppo, state, actors, rollout)
    shape = lambda x: np.asarray(x).reshape(rollout.log_prob.shape)  # noqa: E731
    return shape(batch.value), shape(batch.target - batch.value), shape(batch.advantage)


@pytest.mark.parametrize("mask", [False, True])
def test_advantages_equal_those_of_plain_loops(mask):
    """Value flows across the episodes of a task but not beyond it, and rewards are scaled."""
    state, actors, rollout = started()
    value, advantage, standard = values_and_advantages(MASKED if mask else CONFIG)
    value_of = lambda *inputs: state.agent.policy_and_value(*inputs)[1]  # noqa: E731
    values = jax.jit(jax.vmap(value_of, in_axes=(0, 0, 0, None)))
    noise = rollout.noise[0]
    last = values(actors.memory.output, actors.env.obs, noise, state.normalizers)
    reward = scaled_rewards_naive(np.float64(rollout.transitions.reward), rollout.task_done, 0.95)
    ends = np.asarray(rollout.task_done), np.asarray(rollout.truncated) & mask
    expected, _ = gae_naive(reward, value, np.asarray(last), *ends, 0.95, 0.95)
    assert_close(advantage, expected, rtol=1e-3, atol=1e-4)
    assert_close(standard, (expected - expected.mean()) / expected.std(), rtol=1e-3, atol=1e-3)


def test_the_reward_per_step_is_that_of_the_rollout_before_scaling():
    _, _, rollout = started()
    assert_close(updated()[1]["reward_per_step"], np.mean(rollout.transitions.reward))


def test_masking_zeroes_truncated_advantages_and_changes_no_later_one():
    truncated = np.asarray(started()[2].truncated)
    (_, plain, _), (_, masked, _) = map(values_and_advantages, (CONFIG, MASKED))
    assert truncated.any() and (plain[truncated] != 0).all() and (masked[truncated] == 0).all()
    later = np.cumsum(truncated[::-1], axis=0)[::-1] == 0  # no truncation now or ahead
    np.testing.assert_array_equal(plain[later], masked[later])


def test_memories_are_recomputed_with_the_new_parameters():
    state, actors, rollout = started()
    after, _ = updated()
    observe, memory = jax.jit(jax.vmap(after.agent.actor().observe)), state.actors.memory
    for t in range(CONFIG.ppo.steps):
        step = jax.tree.map(lambda leaf, t=t: leaf[t], rollout.transitions)
        memory = observe(memory, step, rollout.task_done[t])
    assert_close(after.actors.memory, memory)
    assert any(differs(after.actors.memory, actors.memory))
    assert_close(after.actors.env, actors.env)


def test_moments_are_updated_with_the_rollout_after_the_epochs():
    state, _, rollout = started()
    before, after = state.normalizers.obs, updated()[0].normalizers.obs
    seen = np.float64(rollout.transitions.obs).reshape(-1, 3)
    expected = running_moments_update(before.mean, before.variance, before.count, seen)
    assert_close([after.mean, after.variance, after.count], [*expected], rtol=1e-4)
    assert updated()[1]["first_ratio_error"] < 1e-5  # so the epochs used the old moments
    assert updated()[0].normalizers.output.count == after.count


def values(aggregator):
    """The temperatures of an aggregator."""
    return [get(aggregator) for get in temperatures(aggregator)]


def test_the_temperature_setting_is_the_initial_temperature():
    """Also for an aggregator inside another one. Of several, it is the first, and the others keep their ratio to it."""
    nested = Halves(StraightThrough(Softmax(0.2)), Softmax(0.8))
    for method, ratios in (
        (METHODS["splagger-softmax"], [1]),
        (replace(METHODS["splagger"], aggregator=nested), [1, 4]),
    ):
        config = replace(tiny("splagger-softmax", MAZE), method=method)
        build = lambda t, c=config: train.init(c, TUNABLES._replace(temperature=t), jr.key(0)).agent  # noqa: E731
        initial = jax.jit(lambda t, b=build: values(b(t).memory.aggregation.aggregator))
        for first in (0.7, 0.1):
            assert initial(first) == [np.float32(first) * ratio for ratio in ratios]


@pytest.mark.parametrize(
    "aggregator", [Softmax(0.0), Halves(Softmax(0.0), Softmax(0.0005)), Softmax(-1.0)], ids=str
)
def test_temperatures_below_the_lowest_one_start_there(aggregator):
    config = replace(tiny("splagger-softmax", MAZE), method=Method("mine", aggregator=aggregator))
    state = train.init(config, TUNABLES._replace(temperature=0.0), jr.key(0))
    found = values(state.agent.memory.aggregation.aggregator)
    assert found == [np.float32(LOWEST_TEMPERATURE)] * len(found)


def test_the_entropy_weight_raises_the_entropy():
    """Compares the entropy after eleven updates without the weight and with it."""
    config = tiny("splagger", MAZE, **ONE_STEP)
    found = []
    for weight in (0.0, 10.0):
        tunables = TUNABLES._replace(learning_rate=3e-3, entropy_weight=weight)
        state = random_state(config)
        for _ in range(12):
            state, metrics = quick_update(config, tunables, state)
        found.append(metrics["entropy"])
    assert found[1] > found[0] + 0.01


def test_encoder_and_policy_gradients_are_clipped_separately():
    """After one step from zero, Adam's first moment is a tenth of the clipped gradient."""
    config = tiny("splagger", MAZE, **ONE_STEP)
    steep = TUNABLES._replace(entropy_weight=10.0)
    state, metrics = quick_update(config, steep, random_state(config))
    for name in ("encoder", "policy"):
        moment = optax.tree.get(getattr(state.optimizers, name), "mu")
        assert metrics[f"{name}_grad_norm"] > 0.6
        numbers = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(moment)])
        assert_close(np.linalg.norm(numbers), 0.1 * 0.5, rtol=1e-3)


def test_a_finite_gradient_whose_square_overflows_is_no_divergence():
    """Its norm is finite, and the first update takes no step, as with `clip_grad_norm_` of PyTorch."""
    config = tiny("splagger", MAZE, **ONE_STEP)
    before = random_state(config)
    for weight in (1e10, 1e22, 1e34):
        after, metrics = quick_update(config, TUNABLES._replace(entropy_weight=weight), before)
        assert metrics["fault_kind"] == faults.NONE
        assert (metrics["policy_grad_norm"] == np.float32(train.MAX_NORM)) == (weight > 1e10)
        assert any(differs(before.agent.policy, after.agent.policy)) == (weight == 1e10)
    _, metrics = quick_update(config, TUNABLES._replace(entropy_weight=np.inf), before)
    assert metrics["fault_kind"] != faults.NONE


def test_the_norm_of_a_gradient():
    largest = train.MAX_NORM
    for size, norm in ((0, 0), (3, 5), (3e18, 5e18), (1.2e19, largest), (2.5e38, largest)):
        grads = {"a": jnp.float32(size), "b": jnp.full((1, 1), size / 3 * 4, jnp.float32)}
        assert_close(jax.jit(train.gradient_norm)(grads), np.float32(norm))
    assert train.gradient_norm([jnp.array([np.inf, 1.0])]) == np.inf
    assert np.isnan(train.gradient_norm([jnp.array([np.nan, np.inf])]))


def test_the_kl_term_of_pearl_trains_only_the_encoder():
    config = tiny("pearl", MAZE, **ONE_STEP)
    state, weights = random_state(config), (0.0, 1e-6, 1e-3)
    outcomes = [quick_update(config, TUNABLES._replace(kl_weight=w), state) for w in weights]
    kl, encoder, policy = (
        [float(metrics[name]) for _, metrics in outcomes]
        for name in ("kl", "encoder_grad_norm", "policy_grad_norm")
    )
    assert kl[0] > 0 and kl == [kl[0]] * 3
    assert encoder[2] > 3 * encoder[0] and encoder[1] != encoder[0]
    assert_close(policy, [policy[0]] * 3)


def test_only_reconstruction_trains_the_memory_of_pearl_vari():
    config = tiny("pearl-vari", MAZE, **ONE_STEP)
    before = random_state(config)
    after, metrics = quick_update(config, TUNABLES, before)
    assert metrics["encoder_grad_norm"] == 0 < metrics["policy_grad_norm"]
    assert not any(map(np.any, jax.tree.leaves(optax.tree.get(after.optimizers.encoder, "mu"))))
    assert metrics["reconstruction_loss"] > 0
    for part in ("memory", "decoder", "policy"):
        assert all(differs(getattr(before.agent, part), getattr(after.agent, part)))


def test_evaluation_tasks_do_not_depend_on_the_agent():
    state, _ = updated()
    other, _ = quick_update(CONFIG, TUNABLES._replace(learning_rate=0.1), started()[0])
    results = quick_evaluation(CONFIG, state)
    assert results != quick_evaluation(CONFIG, other)
    same = other._replace(agent=state.agent, normalizers=state.normalizers)
    assert results == quick_evaluation(CONFIG, same)
    assert results != quick_evaluation(CONFIG, same._replace(update=jnp.int32(7)))
    assert_close(results["return"], results["return_episode_1"] + results["return_episode_2"])
