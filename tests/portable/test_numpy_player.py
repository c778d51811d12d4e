"""The NumPy player equals the JAX agent, step by step, and imports no JAX."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import splagger
from splagger.agent import Agent, Interface, build
from splagger.aggregators import Max, Sum
from splagger.errors import RunError, SettingError
from splagger.identity import plain
from splagger.memory import EmbeddingSizes, Transition
from splagger.memory import encoders as memory_encoders
from splagger.methods import METHODS, Method
from splagger.network import Network
from splagger.portable import NumpyPlayer, generated, load
from splagger.portable.encoders import ENCODERS
from splagger.runs.named_arrays import named_leaves
from splagger.spaces import Continuous, Discrete, MultiDiscrete
from tests.test_layers import loaded_by

SMALL = Network(EmbeddingSizes(5, 3, 2), 6, 7, 4, (8, 6), width_factor=0.0625)
AGENT = Path(__file__).parents[1] / "contract" / "agent.npz"
OWN = [replace(METHODS["lstm"], name="lstm-split", skip=0.5)]
OWN += [Method("sum", aggregator=Sum()), Method("floor", aggregator=Max(-0.3))]
SUPPORTED = [m for m in METHODS.values() if m.encoder in ENCODERS]
FIRST = [
    "splagger",
    "pearl",
    "pearl-vari",
    "lstm",
    "memoryless",
    "splagger-avgmax",
    "splagger-wsoftmax",
    "transformer",
]
by_name = {"ids": lambda value: getattr(value, "name", None)}


def drawn(shapes, random):
    """Fills a tree of shapes with random numbers; scalars (temperatures, counts) are positive."""

    def leaf(shape):
        scale = random.normal(size=shape.shape) if shape.ndim else 0.3
        return jnp.asarray(0.4 * scale, jnp.float32)

    return jax.tree.map(leaf, shapes)


def pair(method, space, random):
    """Returns a JAX agent with its normalizers, and the same agent in NumPy."""
    example = lambda: build(jr.key(1), method, Interface(5, space, 20), SMALL)  # noqa: E731
    agent = drawn(jax.eval_shape(example), random)
    normalizers = drawn(jax.eval_shape(agent.normalizers), random)
    positive = lambda m: replace(m, variance=jnp.abs(m.variance) + 0.5)  # noqa: E731
    normalizers = type(normalizers)(*map(positive, normalizers))
    sizes = getattr(space, "sizes", ())
    player = NumpyPlayer(named_leaves((agent, normalizers)), plain(method), sizes=sizes)
    return agent, normalizers, player


@jax.jit
def policy_and_value(agent, *inputs):
    distribution, value = agent.policy_and_value(*inputs)
    return distribution, value, distribution.mode()


start = jax.jit(lambda agent: agent.start())
observe = jax.jit(lambda agent, *step: agent.actor().observe(*step))


def check_equal(method, space, steps=9):
    random = np.random.default_rng(0)
    agent, normalizers, player = pair(method, space, random)
    memory = start(agent)
    size = agent.latent.noise_size(agent.memory.output_size)
    obs = random.normal(size=(steps + 1, 5)).astype(np.float32)
    for t in range(steps):
        noise = random.normal(size=size).astype(np.float32)
        inputs = memory.output, jnp.asarray(obs[t]), jnp.asarray(noise), normalizers
        distribution, value, mode = policy_and_value(agent, *inputs)
        discrete = isinstance(space, Discrete)
        expected = jax.nn.softmax(distribution.logits) if discrete else distribution.mean
        np.testing.assert_allclose(player.probabilities(obs[t], noise), expected, 1e-5, 1e-6)
        np.testing.assert_allclose(player.value(obs[t], noise), value, rtol=1e-5, atol=1e-5)
        if not size:
            np.testing.assert_allclose(player.act(obs[t]), mode, rtol=1e-5)
        player.act(obs[t])
        chosen = random.integers(space.size) if discrete else random.normal(size=space.size)
        action, reward, done = jnp.asarray(chosen, space.zero().dtype), random.normal(), t == 5
        player.observe(np.asarray(action), reward, obs[t + 1], done)
        step = Transition(obs[t], action, jnp.float32(reward), obs[t + 1])
        memory = observe(agent, memory, step, done)
        np.testing.assert_allclose(player.memory.output, memory.output, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FIRST)
def test_each_kind_of_memory_acts_as_the_jax_agent(name):
    check_equal(METHODS[name], Discrete(4))


def test_flags_that_a_matmul_leaves_behind_are_no_warnings(monkeypatch):
    """BLAS may meet invalid values in padding; tests treat warnings as errors."""
    *_, player = pair(METHODS["splagger"], Discrete(4), np.random.default_rng(0))
    embed = player._state_embedding
    flagged = lambda x: embed(x) + 0 * np.nan_to_num(np.float32(np.inf) - np.float32(np.inf))  # noqa: E731
    monkeypatch.setattr(player, "_state_embedding", flagged)
    obs = np.ones(5, np.float32)
    assert np.isfinite(player.probabilities(obs)).all() and np.isfinite(player.value(obs))
    player.observe(player.act(obs), 1.0, obs)


@pytest.mark.slow
@pytest.mark.parametrize("method", [*{m.name: m for m in SUPPORTED}.values(), *OWN], **by_name)
def test_every_method_acts_as_the_jax_agent(method):
    check_equal(method, Discrete(4))


@pytest.mark.parametrize("name", ["splagger", "pearl"])
def test_continuous_actions_equal_those_of_the_jax_agent(name):
    check_equal(METHODS[name], Continuous(3))


def test_actions_of_several_numbers_equal_those_of_the_jax_agent():
    random, space = np.random.default_rng(0), MultiDiscrete((2, 3))
    agent, normalizers, player = pair(METHODS["splagger"], space, random)
    memory, obs = agent.start(), random.normal(size=5).astype(np.float32)
    inputs = memory.output, jnp.asarray(obs), jnp.zeros(0), normalizers
    distribution: Any = agent.policy_and_value(*inputs)[0]
    np.testing.assert_allclose(player.probabilities(obs), distribution.probabilities(), 1e-5, 1e-6)
    chosen = player.act(obs)
    np.testing.assert_array_equal(chosen, distribution.mode())
    player.observe(chosen, 0.5, obs)
    step = Transition(jnp.asarray(obs), jnp.asarray(chosen), jnp.float32(0.5), jnp.asarray(obs))
    memory = agent.actor().observe(memory, step, False)
    np.testing.assert_allclose(player.memory.output, memory.output, rtol=1e-5, atol=1e-5)
    sampled = {tuple(player.act(obs, explore=True)) for _ in range(100)}
    assert sampled <= set(np.ndindex(2, 3)) and len(sampled) > 1
    with pytest.raises(SettingError, match=r"action must be 2 numbers below \(2, 3\), got \[0 3\]"):
        player.observe(np.array([0, 3]), 0.0, obs)


def test_every_encoder_is_known():
    assert set(ENCODERS) == set(memory_encoders.ENCODERS)


def test_other_encoders_are_refused_in_one_line():
    about = plain(METHODS["splagger"]) | {"encoder": "mamba"}
    with pytest.raises(SettingError, match="has no encoder 'mamba', only gru, lstm"):
        NumpyPlayer({}, about)


def test_a_transformer_forgets_what_is_older_than_its_context():
    """The JAX agent's context is the environment's horizon, here 20 steps."""
    random = np.random.default_rng(0)
    agent, normalizers, _ = pair(METHODS["transformer"], Discrete(4), random)
    arrays, about = named_leaves((agent, normalizers)), plain(METHODS["transformer"])
    player, memory = NumpyPlayer(arrays, about, context=20), agent.start()
    observe = jax.jit(lambda memory, step: agent.actor().observe(memory, step, False))
    for obs in random.normal(size=(25, 5)).astype(np.float32):
        step = Transition(jnp.asarray(obs), jnp.int32(1), jnp.float32(0.5), jnp.asarray(obs))
        memory = observe(memory, step)
        player.act(obs)
        player.observe(1, 0.5, obs)
    np.testing.assert_allclose(player.memory.output, memory.output, rtol=1e-5, atol=1e-5)


def test_the_numpy_player_plays_as_the_player():
    ours, theirs = load(AGENT), splagger.load(AGENT)
    random = np.random.default_rng(3)
    obs = random.normal(size=(41, 5)).astype(np.float32)
    for t in range(40):
        action = theirs.act(obs[t])
        assert ours.act(obs[t]) == action and type(action) is int
        for player in (ours, theirs):
            player.observe(action, obs[t, 0], obs[t + 1], task_done=t == 20)
    np.testing.assert_allclose(ours.memory.output, theirs.memory.output, rtol=1e-5, atol=1e-6)


def test_kept_products_do_not_change_what_is_computed(monkeypatch):
    monkeypatch.setattr(generated, "KEPT", 2)
    random = np.random.default_rng(0)
    few, player = random.normal(size=(4, 5)), load(AGENT)
    for number in (0, 1, 0, 2, 3, 0, 0, 1):
        fresh = load(AGENT)
        fresh.memory = player.memory
        expected = fresh.probabilities(few[number])
        np.testing.assert_array_equal(player.probabilities(few[number]), expected)
        player.observe(player.act(few[number]), 1.0, few[number])


def test_sampled_actions_follow_the_probabilities():
    player = load(AGENT, seed=1)
    obs = np.array([2.0, -1, 0, 1, 0])
    counts = np.bincount([player.act(obs, explore=True) for _ in range(1500)], minlength=4)
    np.testing.assert_allclose(counts / 1500, player.probabilities(obs), atol=0.06)
    assert len({player.act(obs) for _ in range(5)}) == 1


def test_playing_imports_no_jax():
    code = f"from splagger.portable import load; p = load({str(AGENT)!r}); "
    loaded = loaded_by(code + "p.observe(p.act([0] * 5), 1, [0] * 5)")
    assert not loaded & {"jax", "equinox", "torch", "pandas", "scipy"}


def test_files_that_are_not_agents_are_refused_in_one_line(tmp_path):
    (tmp_path / "text.npz").write_text("nothing")
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    np.save(tmp_path / "one.npy", np.zeros(2))
    (tmp_path / "short.npz").write_bytes(AGENT.read_bytes()[:3000])
    for name in ("text.npz", "other.npz", "one.npy", "short.npz"):
        with pytest.raises(RunError, match=f"{name} is not an agent that splagger wrote"):
            load(tmp_path / name)
    with pytest.raises(RunError, match="there is no agent file"):
        load(tmp_path / "nowhere.npz")


def test_damaged_and_unknown_arrays_are_refused_in_one_line(tmp_path):
    arrays = dict(np.load(AGENT))
    path = tmp_path / "agent.npz"
    wrong = {"0.memory.embedding.state.weight": np.zeros((4, 9), np.float32)}
    np.savez(path, **(arrays | wrong))
    with pytest.raises(RunError, match=r"agent\.npz is damaged"):
        load(path)
    np.savez(path, **(arrays | {"0.memory.gate": np.zeros(1)}))
    with pytest.raises(RunError, match=r"agent\.npz: .* cannot use 0\.memory\.gate"):
        load(path)
    about = json.loads(str(arrays["description"]))
    np.savez(path, **(arrays | {"description": np.asarray(json.dumps(about | {"format": 99}))}))
    with pytest.raises(RunError, match=r"agent\.npz has format 99, newer than this version"):
        load(path)
    about["run"]["method"]["aggregator"] = {"kind": "Max", "code": "0123456789"}
    np.savez(path, **(arrays | {"description": np.asarray(json.dumps(about))}))
    with pytest.raises(RunError, match="has no aggregator 'custom'"):
        load(path)


def test_a_damaged_critic_is_found_when_it_is_used(tmp_path):
    shutil.copy(AGENT, tmp_path / "agent.npz")
    arrays = dict(np.load(AGENT))
    del arrays["0.policy.hypernetwork.heads.critic.layers.0.bias"]
    np.savez(tmp_path / "agent.npz", **arrays)
    player = load(tmp_path / "agent.npz")
    player.act(np.zeros(5))
    with pytest.raises(RunError, match="the critic of this agent is damaged"):
        player.value(np.zeros(5))


def test_invalid_calls_are_refused_in_one_line():
    player = load(AGENT)
    with pytest.raises(SettingError, match=r"call act\(\) before each"):
        player.observe(0, 0.0, np.zeros(5))
    for obs in (np.zeros(4), "five", [np.nan] * 5, None):
        with pytest.raises(SettingError, match="obs must"):
            player.act(obs)
    player.act(np.zeros(5))
    for action in (4, -1, [1, 2], 0.9, "1", None, np.nan):
        with pytest.raises(SettingError, match="action must be one of 0 … 3"):
            player.observe(action, 0.0, np.zeros(5))
    with pytest.raises(SettingError, match="reward must be"):
        player.observe(0, "much", np.zeros(5))


def test_half_precision_files_are_played_in_single_precision(tmp_path):
    arrays = {
        name: array.astype(np.float16) if array.dtype == np.float32 else array
        for name, array in np.load(AGENT).items()
    }
    np.savez(tmp_path / "half.npz", **arrays)
    obs = np.linspace(-1, 1, 5)
    half, full = load(tmp_path / "half.npz"), load(AGENT)
    assert half.probabilities(obs).dtype == np.float32
    np.testing.assert_allclose(half.probabilities(obs), full.probabilities(obs), atol=2e-3)


def test_agents_with_a_decoder_are_played_without_it():
    agent, normalizers, _ = pair(METHODS["pearl-vari"], Discrete(4), np.random.default_rng(0))
    assert isinstance(agent, Agent) and agent.decoder is not None
    assert any(name.startswith("0.decoder.") for name in named_leaves((agent, normalizers)))
