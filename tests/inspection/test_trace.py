"""Traces: equal to the player's meta-episode; interventions change the memory and nothing else."""

import importlib
import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import splagger
from splagger.agent import build
from splagger.agents import Player
from splagger.agents.player import random_key
from splagger.envs import EndlessTMaze, MetaEnv, MineMaze, TMaze
from splagger.envs.protocol import EnvSpec, Step
from splagger.errors import SettingError
from splagger.inspection import Change, Outcome, counterfactuals, effects, inspect, trace
from splagger.inspection.interventions import __file__ as interventions_file
from splagger.inspection.interventions import flip_signal, interventions
from splagger.memory import Transition
from splagger.spaces import Discrete
from tests.tiny import tiny

AGENT = Path(__file__).parents[1] / "contract" / "agent.npz"
SCRIPT = Path(interventions_file).with_name("page.js")


@pytest.fixture(scope="module")
def player():
    return splagger.load(AGENT)


@pytest.fixture(scope="module")
def traced(player):
    return trace(player, 3, draw=True)


@pytest.fixture(scope="module")
def pearl():
    """An untrained agent with a belief, whose latent is the belief itself."""
    run = tiny(method="pearl-vari", rates=(1e-3,), seeds=1)
    config, random = run.config, np.random.default_rng(0)
    example = lambda: build(jr.key(0), config.method, config.interface, config.network)  # noqa: E731
    drawn = lambda leaf: jnp.asarray(0.4 * random.normal(size=leaf.shape), jnp.float32)  # noqa: E731
    agent = jax.tree.map(drawn, jax.eval_shape(example))
    return Player(agent, agent.normalizers(), run.row.meta, run.points[0], run=run)


def test_a_trace_is_what_the_player_plays(player, traced):
    player.reset()
    for t, obs in enumerate(traced.obs):
        np.testing.assert_allclose(player.memory.output, traced.output[t], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(traced.memories[t].output, traced.output[t])
        assert player.act(obs) == traced.action[t] == traced.probabilities[t].argmax()
        if t + 1 < len(traced.obs):
            player.observe(int(traced.action[t]), traced.reward[t], traced.obs[t + 1])
    np.testing.assert_allclose(traced.probabilities.sum(axis=1), 1, rtol=1e-5)


def test_a_trace_plays_the_task_that_watch_plays(player, traced, tmp_path):
    assert splagger.watch(player, tmp_path / "watch.gif", seed=3) == traced.reward.sum()
    assert len(traced.frames) == len(traced.reward) == 20
    assert np.flatnonzero(traced.episode_end).tolist() == [4, 9, 14, 19]
    assert np.flatnonzero(traced.signal).tolist() == [1, 6, 11, 16]


def test_values_are_the_critics(player, traced):
    for t in (0, 7, 19):
        inputs = traced.memories[t].output, jnp.asarray(traced.obs[t]), jnp.zeros(0)
        _, value = player.agent.policy_and_value(*inputs, player.normalizers)
        assert traced.value[t] == pytest.approx(float(value), rel=1e-5)


def test_every_maximum_is_the_value_of_the_step_that_set_it(traced):
    held, set_by = traced.neurons[:, traced.skip :], traced.set_by
    assert set_by.shape == held.shape and (set_by[0] == -1).all() and (held >= 0).all()
    for t, i in np.ndindex(*set_by.shape):
        step = set_by[t, i]
        assert step < t
        if t == 0:  # the empty memory shows an input of zeros
            assert step == -1
        elif step < 0:
            assert held[t, i] == 0
        else:
            assert held[t, i] == held[step + 1, i] > held[step, i]


def test_beliefs_have_a_variance_that_never_grows(pearl):
    found = trace(pearl, 0)
    size = found.output.shape[1] // 2
    np.testing.assert_allclose(found.variance, np.exp(found.output[:, size:]), rtol=1e-6)
    assert (np.diff(found.variance[1:], axis=0) <= 1e-6).all()
    assert found.set_by is None and found.frames == []


def test_given_actions_are_taken_and_the_agents_distribution_is_kept(player, traced):
    forced = [3] * 20
    found = trace(player, 3, actions=forced)
    assert found.action.tolist() == forced
    np.testing.assert_array_equal(found.probabilities[0], traced.probabilities[0])
    same = trace(player, 3, actions=list(traced.action))
    np.testing.assert_array_equal(same.probabilities, traced.probabilities)


def test_a_change_of_the_memory_starts_at_its_step(player, traced):
    empty = player.agent.start()
    recall = lambda step, memory, past: empty if step == 8 else memory  # noqa: E731
    found = trace(player, 3, change=Change(recall=recall), actions=list(traced.action))
    np.testing.assert_array_equal(found.output[:8], traced.output[:8])
    np.testing.assert_allclose(found.output[8], traced.output[0], rtol=1e-5)
    np.testing.assert_array_equal(found.obs, traced.obs)


def test_every_intervention_has_an_outcome(player, traced):
    outcomes = counterfactuals(player, traced, 3)
    always = ["signal flipped", "order shuffled", "aggregate frozen", "bypass frozen"]
    once = ["memory emptied at step 17", "memory of another task at step 17"]
    assert [o.name for o in outcomes] == always + once
    colors = re.search(r"OUTCOME_COLORS = \[(.*?)\]", SCRIPT.read_text())
    assert colors is not None and colors[1].count("#") == len(outcomes)
    for outcome in outcomes:
        assert outcome.distance.shape == (20,) and len(outcome.returns) == 20
        assert (outcome.distance >= 0).all() and (outcome.distance <= 1).all()
        assert 0 <= outcome.changed <= 1
    assert (outcomes[4].distance[:17] == 0).all()
    assert outcomes[0].distance.max() > 0


def test_a_frozen_part_of_the_memory_is_that_of_an_empty_one(player, traced):
    model, actions = player.agent.memory, list(traced.action)
    cases = {case.name: case for case in interventions(player, traced, 3, 17)}
    skip = traced.skip
    for name, part, value in (
        ("bypass frozen", slice(None, skip), 0.0),
        ("aggregate frozen", slice(skip, None), traced.neurons[0, skip:]),
    ):
        neurons = traced.neurons.copy()
        neurons[:, part] = value
        expected = jax.vmap(model.projection)(jnp.asarray(neurons))
        found = trace(player, 3, change=cases[name].change, actions=actions)
        np.testing.assert_allclose(found.output, expected, atol=1e-5)
        assert np.abs(found.output - traced.output).max() > 0.01
        np.testing.assert_array_equal(found.neurons, traced.neurons)  # the memory itself goes on


def test_neurons_project_to_the_output_of_every_step(player, traced):
    """Also before the first transition, where the memory shows an input of zeros."""
    expected = jax.vmap(player.agent.memory.projection)(jnp.asarray(traced.neurons))
    np.testing.assert_allclose(traced.output, expected, atol=1e-5)


class Draws(splagger.envs.Bandit):
    """A bandit that pays what it draws from its key, whatever the action."""

    def step(self, key, task, state, action):
        after = super().step(key, task, state, action)
        return after[0], after[1]._replace(reward=jr.uniform(key))


def test_sampled_latents_do_not_know_the_environments_random_numbers():
    run = tiny(env=MetaEnv(Draws(arms=2), episodes=1), method="pearl", overrides={}, rates=(1e-3,))
    config = run.config
    agent = build(jr.key(0), config.method, config.interface, config.network)
    player = Player(agent, agent.normalizers(), run.row.meta, run.points[0], run=run)
    correlations = []
    for seed in range(3):
        found = trace(player, seed)
        noise = np.asarray(found.latent)  # mean and deviation change slowly, so this is the noise
        correlations += [np.corrcoef(z, found.reward)[0, 1] for z in noise.T]
    assert np.abs(correlations).max() < 0.5 and np.std(found.latent, axis=0).min() > 0


def test_players_do_not_draw_the_numbers_of_a_loop_with_the_same_seed(player):
    """A loop that splits `jr.key(0)` for its environment must not meet the player's own numbers."""
    mine, loop = random_key(0), jr.key(0)
    for _ in range(3):
        mine, drawn = jr.split(mine)
        loop, step = jr.split(loop)
        assert not np.array_equal(jr.key_data(drawn), jr.key_data(step))
    assert not np.array_equal(jr.key_data(player._key), jr.key_data(jr.key(0)))


def test_memories_without_a_split_have_no_parts_to_freeze(pearl):
    names = [case.name for case in interventions(pearl, trace(pearl, 1), 1, 5)]
    assert not any("frozen" in name for name in names) and "order shuffled" in names


def test_effects_are_means_over_tasks(player):
    found = effects(player, tasks=2, first_seed=3)
    assert [effect.name for effect in found][:2] == ["unchanged", "signal flipped"]
    returns = [trace(player, seed).reward.sum() for seed in (3, 4)]
    assert found[0].mean == pytest.approx(np.mean(returns)) and found[0].changed == 0
    assert found[0].margin == pytest.approx(0.98 * abs(returns[0] - returns[1]))
    with pytest.raises(SettingError, match="at least 2 tasks, got 1"):
        effects(player, tasks=1)


@pytest.mark.parametrize("lacking, left", [((1,), (0, 2)), ((0, 2), (0, 1, 2))])
def test_effects_compare_the_same_tasks(player, monkeypatch, lacking, left):
    """A task without one of the interventions is left out, or that intervention if most tasks lack it."""
    total = lambda seed: np.float32([10**seed])  # noqa: E731

    def outcomes(player, original, seed):
        names = ["memory emptied at step 3", "memory of another task at step 3"]
        names = names[:1] if seed in lacking else names
        return [Outcome(name, "", total(seed), 0.5, np.zeros(1)) for name in names]

    traced = lambda player, seed: SimpleNamespace(reward=total(seed))  # noqa: E731
    module = importlib.import_module("splagger.inspection.counterfactuals")
    monkeypatch.setattr(module, "trace", traced)
    monkeypatch.setattr(module, "counterfactuals", outcomes)
    found = effects(player, tasks=3)
    other = [] if len(left) == 3 else ["memory of another task"]
    assert [effect.name for effect in found] == ["unchanged", "memory emptied", *other]
    for effect in found:
        assert effect.mean == pytest.approx(np.mean([10**seed for seed in left]))


def test_memories_without_order_are_the_same_after_a_shuffle(pearl):
    original = trace(pearl, 1)
    shuffled = {o.name: o for o in counterfactuals(pearl, original, 1)}["order shuffled"]
    np.testing.assert_allclose(shuffled.distance, 0, atol=1e-4)
    assert shuffled.changed == 0 and shuffled.returns[-1] == original.reward.sum()


class Unseen(eqx.Module):
    """An environment without `render`."""

    spec = EnvSpec("Unseen", 5, Discrete(4), 3)

    def sample_task(self, key):
        return jnp.zeros(())

    def reset(self, key, task):
        return task, jnp.zeros(5)

    def step(self, key, task, state, action):
        return state, Step(jnp.zeros(5), jnp.float32(0), jnp.asarray(False), jnp.asarray(True))


def flipped(env, obs):
    """Returns the observation that a memory receives in place of `obs`."""
    step = Transition(obs, jnp.int32(0), jnp.float32(0), -obs)
    found = flip_signal(env)(step)
    assert (found.action, found.reward) == (step.action, step.reward)
    return found.obs


@pytest.mark.parametrize("signals", [(1,), (0, 4), (3, 1), (4, 0, 2)])
def test_flipped_signals_mean_the_other_door(signals):
    """Also where there are several: what the memory receives is an episode of a task with the other door."""
    maze = TMaze(length=5, signals=signals)
    flip = flip_signal(MetaEnv(maze, 2))
    for seed in range(4):
        task = maze.sample_task(jr.key(seed))
        for _ in range(2):  # episodes of one task
            state, obs = maze.reset(jr.key(0), task)
            seen = []
            for _ in range(maze.length):
                state, out = maze.step(jr.key(1), task, state, jnp.int32(0))
                after = maze.reset(jr.key(0), task)[1] if out.terminated else out.obs
                found = flip(Transition(obs, jnp.int32(0), jnp.float32(0), after))
                seen.append((found.obs, found.next_obs))
                obs = after
            for first, second in itertools.pairwise(seen):
                np.testing.assert_array_equal(first[1], second[0])
            ups = sum(float(before[1]) == 1 for before, _ in seen)
            assert (ups % 2 == 1) != bool(task.door_up)


def test_signals_are_flipped_and_nothing_else(player):
    obs = jnp.array([0.0, 1.0, 0.0, -1.0, 0.0])
    np.testing.assert_array_equal(flipped(player.env, obs), [0, -1, 0, -1, 0])
    endless = MetaEnv(EndlessTMaze(length=5, laps=2), 1)
    np.testing.assert_array_equal(flipped(endless, obs[:4]), [0, -1, 0, -1])
    maze = MineMaze(rooms=2)
    env = MetaEnv(maze, 2)
    state, green = maze.reset(jr.key(0), jnp.asarray(True))
    red = maze.observe(jnp.asarray(False), state)
    flagged = lambda image: jnp.append(image, 1.0)  # noqa: E731
    np.testing.assert_array_equal(flipped(env, flagged(green)), flagged(red))
    np.testing.assert_array_equal(flipped(env, flagged(red)), flagged(green))
    wall = maze.observe(jnp.asarray(True), state._replace(progress=jnp.int32(1)))
    np.testing.assert_array_equal(flipped(env, flagged(wall)), flagged(wall))


def test_wrong_requests_are_refused_in_one_line(player, pearl, traced, tmp_path):
    with pytest.raises(SettingError, match="cut must be a step from 0 to 19, got 20"):
        counterfactuals(player, traced, 3, cut=20)
    with pytest.raises(SettingError, match="a page shows one agent or two, got 3"):
        inspect([player] * 3, tmp_path / "page.html")
    unseen = Player(player.agent, player.normalizers, MetaEnv(Unseen(), 1), player.point)
    with pytest.raises(SettingError, match=r"Unseen cannot be drawn: it has no render\(task"):
        inspect(unseen, tmp_path / "page.html")
    other = MetaEnv(splagger.envs.Planning(size=2, horizon=4), 1)
    elsewhere = Player(player.agent, player.normalizers, other, player.point)
    with pytest.raises(
        SettingError, match=r"must have the same environment .* t-ls-small and Plan"
    ):
        inspect([player, elsewhere], tmp_path / "page.html")
