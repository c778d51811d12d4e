"""Laws that every method of the table obeys."""

import functools as ft
import itertools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from splagger import (
    METHODS,
    Continuous,
    Discrete,
    Interface,
    Network,
    Transition,
    build,
    methods,
    policy,
)
from splagger.agent import Normalizers
from splagger.nn import Moments
from splagger.policy import Gaussian
from splagger.tables import lookup
from tests.close import assert_close

STEPS, OBS, OUTPUT = 4, 5, 24
INTERFACE = Interface(OBS, Discrete(4), 12)
NETWORK = Network(width_factor=1 / 16, state_embedding=16, latent_embedding=5, hidden=(8,))

# name → number of parameters at the paper's sizes, for an observation size of 5 and 4 actions
PARAMETERS = {
    **dict.fromkeys(["splagger", "rnn", "amrl", "splagger-nosplit"], 5_416_195),
    **dict.fromkeys(["splagger-avg", "splagger-avgmax"], 5_416_195),
    **dict.fromkeys(["splagger-nornn", "amrl-nornn", "cnp"], 5_177_859),
    **{"splagger-softmax": 5_416_195 + 1, "softmax-nornn": 5_177_859 + 1},  # its temperature
    **{"splagger-wavg": 6_071_555, "splagger-wsoftmax": 6_071_556, "wsoftmax-nornn": 5_198_596},
    **{"pearl": 5_177_559, "pearl-gru": 5_415_895, "pearl-vari": 5_181_900},
    **{"lstm": 5_502_211, "lstm-invinit": 5_502_211, "transformer": 5_165_587},
    **dict.fromkeys(["mingru", "splagger-mingru", "amrl-mingru"], 5_198_595),
    **dict.fromkeys(["lru", "splagger-lru", "amrl-lru"], 5_482_755),
    **dict.fromkeys(["mlstm", "splagger-mlstm"], 5_204_427),
    "memoryless": 5_177_859 - 20_736 - 248 + 256,  # a constant instead of encoder and embeddings
}
# Their encoders and aggregators are tested by other rows; `make test-slow` tests the combinations too.
SLOW = {"mingru", "lru", "amrl-mingru", "amrl-lru", "splagger-mlstm", "splagger-avg", "pearl-gru"}
SLOW |= {"splagger-nornn", "amrl-nornn", "softmax-nornn", "wsoftmax-nornn", "splagger-nosplit"}
SLOW |= {"splagger-avgmax", "splagger-wavg", "lstm-invinit", "splagger-softmax", "splagger-mingru"}
ROWS = {n: pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in PARAMETERS}
every_method = pytest.mark.parametrize("name", ROWS.values())


@ft.cache
def fresh(name, seed=0):
    return build(jr.key(seed), METHODS[name], INTERFACE, NETWORK)


def perturbed(agent):
    """Adds noise to every array of the agent except a temperature, as if it had been trained."""
    rng = np.random.default_rng(0)
    noise = jax.tree.map(lambda x: 0.2 * bool(x.ndim) * rng.normal(size=x.shape), agent)
    return jax.tree.map(lambda x, y: np.float32(x + y), jax.device_get(agent), noise)


NUMBERS = jr.normal(jr.key(1), (3, STEPS, OBS))
TRANSITIONS = Transition(NUMBERS[0], jnp.arange(STEPS), NUMBERS[1, :, 0], NUMBERS[2])
ENDS = jnp.arange(STEPS) == 2


def test_names_are_unique_and_aliases_are_the_same_rows():
    assert len(methods.ROWS) == len({row.name for row in methods.ROWS}) == len(PARAMETERS)
    assert METHODS["cnp"] is METHODS["splagger-nornn-avg"]
    assert METHODS["max"] is METHODS["splagger-nornn"]
    assert METHODS["max-st"] is METHODS["amrl-nornn"]


def test_the_error_for_an_unknown_name_suggests_a_similar_one():
    with pytest.raises(ValueError, match="no method 'splager'; did you mean splagger"):
        lookup(METHODS, "splager", "method")


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_number_of_parameters_is_as_in_the_paper(name):
    interface = Interface(5, Discrete(4), 400)
    agent = jax.eval_shape(lambda key: build(key, METHODS[name], interface), jr.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(agent)) == PARAMETERS[name]


@pytest.mark.parametrize("name", ["splagger", "transformer", "pearl", "pearl-vari"])
def test_agents_with_continuous_actions_can_act_and_observe(name):
    """One method per kind of latent; computed for one, shapes only for the others."""

    def act(key):
        agent = build(key, METHODS[name], Interface(OBS, Continuous(6), 12), NETWORK)
        actor, memory, normalizers = agent.actor(), agent.start(), agent.normalizers()
        noise, obs = agent.sample_noise(*jr.split(key)), jnp.ones(OBS)
        chosen = actor.act(memory, obs, noise, normalizers)
        _, value = agent.policy_and_value(memory.output, obs, noise.latent, normalizers)
        step = Transition(obs, chosen.action, value, obs)
        return chosen, value, actor.observe(memory, step, False).output

    run = jax.jit(act) if name == "pearl" else ft.partial(jax.eval_shape, act)
    chosen, value, output = run(jr.key(0))
    assert (chosen.action.shape, value.shape, output.shape) == ((6,), (), (OUTPUT,))
    assert name != "pearl" or (np.isfinite(output).all() and np.isfinite(chosen.log_prob))


@pytest.mark.parametrize("name", ["splagger", "pearl", "pearl-vari"])
def test_acting_and_learning_see_normalized_observations(name):
    """The definition: the policy of (s - mean) / √variance and of the latent."""
    moments = Moments(jnp.arange(OBS) / 2, 1 + jnp.arange(OBS) / 3, jnp.float32(9))
    normalizers = Normalizers(moments, Moments.create(OUTPUT))
    obs = NUMBERS[0, 0]

    @jax.jit
    def everything(agent):
        noise, memory = agent.sample_noise(jr.key(5), jr.key(6)), agent.start()
        standard = (obs - moments.mean) / jnp.sqrt(moments.variance + 1e-8)
        latent = agent.latent(memory.output, noise.latent, normalizers.output)
        expected, plain = agent.policy(standard, latent), agent.policy(obs, latent)
        one = agent.policy_and_value(memory.output, obs, noise.latent, normalizers)
        batch = [x[None] for x in (memory.output, obs, noise.latent)]
        many = agent.evaluate_batch(*batch, normalizers)
        acted = agent.actor().act(memory, obs, noise, normalizers)
        return expected, plain, one, many, acted, expected[0].log_prob(acted.action)

    expected, plain, one, many, acted, log_prob = everything(perturbed(fresh(name)))
    assert jnp.abs(plain[0].logits - expected[0].logits).max() > 1e-3
    assert_close(one, expected, rtol=1e-5, atol=1e-6)
    assert_close(jax.tree.map(lambda x: x[0], many), expected, rtol=1e-5, atol=1e-6)
    assert_close(acted.log_prob, log_prob, rtol=1e-4, atol=1e-5)


def test_many_seeds_at_once_equal_the_seeds_one_by_one():
    name = "splagger-softmax"
    create = jax.vmap(lambda key: build(key, METHODS[name], INTERFACE, NETWORK))
    many = jax.jit(create)(jnp.stack([jr.key(0), jr.key(1)]))
    assert_close(many, jax.tree.map(lambda *x: np.stack(x), fresh(name, 0), fresh(name, 1)))


@jax.jit
def both_ways(agent, memory, ends):
    """Returns (last memory, outputs) of a replay and of single steps, for each row of `ends`."""
    actor = agent.actor()

    def one(ends):
        observe = lambda memory, x: (actor.observe(memory, *x), memory.output)  # noqa: E731
        return agent.replay(memory, TRANSITIONS, ends), jax.lax.scan(
            observe, memory, (TRANSITIONS, ends)
        )

    return jax.vmap(one)(ends)


@every_method
def test_replay_equals_repeated_observe_wherever_tasks_end(name):
    """From a memory of zeros, then from the memory after four steps with changed parameters."""
    ends = jnp.array(list(itertools.product([False, True], repeat=STEPS)))
    memory = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(fresh(name).start))
    for agent in (fresh(name), perturbed(fresh(name))):
        replayed, observed = both_ways(agent, memory, ends)
        assert_close(replayed, observed, rtol=1e-5, atol=5e-6)
        memory = jax.tree.map(lambda m: np.asarray(m)[0], replayed[0])  # no task ends in that row


@every_method
def test_everything_is_in_single_precision(name):
    """Except the Transformer's step count."""
    agent = fresh(name)
    states = jax.eval_shape(lambda: (agent.start(), agent.normalizers()))
    kinds = {str(x.dtype) for x in jax.tree.leaves((agent, states, two_updates(name)))}
    assert kinds == ({"float32", "int32"} if name == "transformer" else {"float32"})


@jax.jit
def remember(agent, cotangents):
    """Returns the outputs of a replay and the derivative of (outputs · cotangents) by the memory's arrays."""

    def replay(memory):
        changed = eqx.tree_at(lambda agent: agent.memory, agent, memory)
        return changed.replay(jax.lax.stop_gradient(changed.start()), TRANSITIONS, ENDS)[1]

    outputs, vjp = jax.vjp(replay, agent.memory)
    return outputs, vjp(cotangents)[0]


@jax.jit
@ft.partial(jax.grad, argnums=(0, 1))
def derivative(rest, outputs):
    """Differentiates a loss that depends on every array; compiled once for all memories."""
    noise, moments = jr.normal(jr.key(3), (STEPS, OUTPUT // 2)), Moments.create(OUTPUT)

    def loss(output, step, noise):
        normalizers = Normalizers(Moments.create(OBS), moments)
        distribution, value = rest.policy_and_value(output, step.obs, noise, normalizers)
        total = (value - 1.0) ** 2 - distribution.log_prob(step.action) - distribution.entropy()
        sample = Gaussian()(output, noise, moments)
        return total + (rest.decoder.error(sample, step) if rest.decoder else 0.0)

    return jax.vmap(loss)(outputs, TRANSITIONS, noise).mean()


def gradient(agent):
    outputs, _ = remember(agent, jnp.zeros((STEPS, OUTPUT)))
    rest, by_outputs = derivative(eqx.tree_at(lambda a: a.memory, agent, None), outputs)
    _, memory = remember(agent, by_outputs)
    return eqx.tree_at(lambda a: a.memory, rest, memory, is_leaf=lambda x: x is None)


@ft.cache
def two_updates(name):
    """Returns the agent after two steps of Adam (on one long vector), and the gradient of each step."""
    agent, optimizer, gradients = fresh(name), optax.adam(1e-2), []
    leaves, structure = jax.tree.flatten(agent)
    ravel = lambda tree: np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])  # noqa: E731
    boundaries, state = np.cumsum([x.size for x in leaves])[:-1], optimizer.init(ravel(agent))
    for _ in range(2):
        gradients.append(gradient(agent))
        updates, state = optimizer.update(ravel(gradients[-1]), state)
        parts = zip(np.split(ravel(agent) + np.asarray(updates), boundaries), leaves, strict=True)
        agent = structure.unflatten([part.reshape(x.shape) for part, x in parts])
    return agent, gradients


@every_method
def test_every_array_changes_within_two_updates(name):
    after, gradients = two_updates(name)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
    pairs = zip(jax.tree.leaves_with_path(fresh(name)), jax.tree.leaves(after), strict=True)
    assert not [jax.tree_util.keystr(path) for (path, x), y in pairs if np.array_equal(x, y)]


@every_method
def test_the_first_gradient_into_a_memory_is_zero_unless_it_reconstructs(name):
    """Bias-HyperInit ignores the latent at first; after one update it matters, and so does the memory."""
    first, second = ([np.any(x) for x in jax.tree.leaves(g.memory)] for g in two_updates(name)[1])
    assert any(first) == METHODS[name].reconstruct
    assert all(second)


@pytest.mark.parametrize("name", [row for name, row in ROWS.items() if "softmax" in name])
def test_temperatures_are_learned(name):
    after = two_updates(name)[0].memory.aggregation.aggregator
    assert fresh(name).memory.aggregation.aggregator.temperature == np.float32(0.1)
    assert after.temperature != np.float32(0.1)


@pytest.mark.parametrize(
    "latent", [policy.latent.Deterministic(), policy.latent.Gaussian()], ids=str
)
def test_a_bottleneck_before_an_aggregator_that_reads_half_of_its_inputs(latent):
    """Latent and policy have the size of what is read, not of the bottleneck."""
    method = replace(METHODS["splagger-wavg"], name="own", bottleneck=True, skip=0.0, latent=latent)

    def act():
        agent = build(jr.key(0), method, INTERFACE, NETWORK)
        assert agent.memory.output_size == OUTPUT // 2
        noise = agent.sample_noise(jr.key(1), jr.key(2))
        return agent.actor().act(agent.start(), jnp.ones(OBS), noise, agent.normalizers()).action

    assert jax.eval_shape(act).shape == ()
