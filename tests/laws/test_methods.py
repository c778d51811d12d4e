"""Laws that every method of the table obeys."""

import functools as ft
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from splagger import METHODS, Continuous, Discrete, Interface, Network, Transition, build, methods
from splagger.agent import Normalizers
from splagger.nn import Moments
from splagger.policy import Gaussian
from splagger.tables import lookup
from tests.close import assert_close

STEPS, OBS, OUTPUT = 4, 5, 24
INTERFACE = Interface(OBS, Discrete(4), 12)
NETWORK = Network(width_factor=1 / 16, state_embedding=16, latent_embedding=5, hidden=(8,))

# name → parameters of the paper's sizes, for 5 numbers observed and 4 actions
PARAMETERS = {
    **dict.fromkeys(["splagger", "rnn", "amrl", "splagger-nosplit"], 5_416_195),
    **dict.fromkeys(["splagger-avg", "splagger-avgmax"], 5_416_195),
    **dict.fromkeys(["splagger-nornn", "amrl-nornn", "cnp"], 5_177_859),
    **{"splagger-softmax": 5_416_195 + 1, "softmax-nornn": 5_177_859 + 1},  # its temperature
    **{"splagger-wavg": 6_071_555, "splagger-wsoftmax": 6_071_556, "wsoftmax-nornn": 5_198_596},
    **{"pearl": 5_177_559, "pearl-gru": 5_415_895, "pearl-vari": 5_181_900},
    **{"lstm": 5_502_211, "lstm-invinit": 5_502_211, "transformer": 5_165_587},
    "memoryless": 5_177_859 - 20_736 - 248 + 256,  # a constant in place of encoder and embeddings
}
every_method = pytest.mark.parametrize("name", PARAMETERS)


@ft.cache
def fresh(name, seed=0):
    return build(jr.key(seed), METHODS[name], INTERFACE, NETWORK)


def perturbed(agent):
    """The agent with noise in every array, as after training; a temperature stays as it is."""
    rng = np.random.default_rng(0)
    noise = jax.tree.map(lambda x: 0.2 * bool(x.ndim) * rng.normal(size=x.shape), agent)
    return jax.tree.map(lambda x, y: np.float32(x + y), jax.device_get(agent), noise)


NUMBERS = jr.normal(jr.key(1), (3, STEPS, OBS))
TAKEN = Transition(NUMBERS[0], jnp.arange(STEPS), NUMBERS[1, :, 0], NUMBERS[2])
ENDS = jnp.arange(STEPS) == 2


def test_names_are_unique_and_aliases_are_the_same_rows():
    assert len(methods.ROWS) == len({row.name for row in methods.ROWS}) == len(PARAMETERS)
    assert METHODS["cnp"] is METHODS["splagger-nornn-avg"]
    assert METHODS["max"] is METHODS["splagger-nornn"]
    assert METHODS["max-st"] is METHODS["amrl-nornn"]


def test_a_wrong_name_is_answered_with_a_near_one():
    with pytest.raises(ValueError, match="no method 'splager'; did you mean splagger"):
        lookup(METHODS, "splager", "method")


@every_method
def test_parameters_are_as_many_as_the_paper_s(name):
    interface = Interface(5, Discrete(4), 400)
    agent = jax.eval_shape(lambda key: build(key, METHODS[name], interface), jr.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(agent)) == PARAMETERS[name]


@pytest.mark.parametrize("name", ["splagger", "transformer", "pearl", "pearl-vari"])
def test_continuous_actions_are_built_and_acted(name):
    """One method of every kind of latent; numbers for one, shapes for the others."""

    def act(key):
        agent = build(key, METHODS[name], Interface(OBS, Continuous(6), 12), NETWORK)
        chosen = agent.act(agent.start(), jnp.ones(OBS), key, agent.normalizers())
        step = Transition(jnp.ones(OBS), chosen.action, chosen.value, jnp.ones(OBS))
        return chosen, agent.observe(agent.start(), step, False).output

    run = jax.jit(act) if name == "pearl" else ft.partial(jax.eval_shape, act)
    chosen, output = run(jr.key(0))
    assert (chosen.action.shape, chosen.value.shape, output.shape) == ((6,), (), (OUTPUT,))
    assert name != "pearl" or (np.isfinite(output).all() and np.isfinite(chosen.log_prob))


def test_many_seeds_at_once_are_the_seeds_one_by_one():
    name = "splagger-softmax"
    create = jax.vmap(lambda key: build(key, METHODS[name], INTERFACE, NETWORK))
    many = jax.jit(create)(jnp.stack([jr.key(0), jr.key(1)]))
    assert_close(many, jax.tree.map(lambda *x: np.stack(x), fresh(name, 0), fresh(name, 1)))


@jax.jit
def both_ways(agent, memory, ends):
    """(last memory, outputs) of a replay, and of one step after another, for each row of ends."""

    def one(ends):
        observe = lambda memory, x: (agent.observe(memory, *x), memory.output)  # noqa: E731
        return agent.replay(memory, TAKEN, ends), jax.lax.scan(observe, memory, (TAKEN, ends))

    return jax.vmap(one)(ends)


@every_method
def test_replay_is_repeated_observe_wherever_tasks_end(name):
    """From a memory of zeros, then from that of four steps, with parameters not the first."""
    ends = jnp.array(list(itertools.product([False, True], repeat=STEPS)))
    memory = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(fresh(name).start))
    for agent in (fresh(name), perturbed(fresh(name))):
        replayed, observed = both_ways(agent, memory, ends)
        assert_close(replayed, observed, rtol=1e-5, atol=5e-6)
        memory = jax.tree.map(lambda m: np.asarray(m)[0], replayed[0])  # no task ends in that row


@every_method
def test_all_is_in_single_precision(name):
    """But for the Transformer's count of steps."""
    agent = fresh(name)
    states = jax.eval_shape(lambda: (agent.start(), agent.normalizers()))
    kinds = {str(x.dtype) for x in jax.tree.leaves((agent, states, two_updates(name)))}
    assert kinds == ({"float32", "int32"} if name == "transformer" else {"float32"})


@jax.jit
def remember(agent, cotangents):
    """Outputs of a replay, and the derivative of (outputs · cotangents) by the memory's arrays."""

    def replay(memory):
        again = eqx.tree_at(lambda agent: agent.memory, agent, memory)
        return again.replay(jax.lax.stop_gradient(again.start()), TAKEN, ENDS)[1]

    outputs, vjp = jax.vjp(replay, agent.memory)
    return outputs, vjp(cotangents)[0]


@jax.jit
@ft.partial(jax.grad, argnums=(0, 1))
def derivative(rest, outputs):
    """Of something that every array has a part in; compiled once for all memories."""
    noise, moments = jr.normal(jr.key(3), (STEPS, OUTPUT // 2)), Moments.create(OUTPUT)

    def loss(output, step, noise):
        normalizers = Normalizers(Moments.create(OBS), moments)
        distribution, value = rest.judge(output, step.obs, noise, normalizers)
        total = (value - 1.0) ** 2 - distribution.log_prob(step.action) - distribution.entropy()
        sample = Gaussian()(output, noise, moments)
        return total + (rest.decoder.error(sample, step) if rest.decoder else 0.0)

    return jax.vmap(loss)(outputs, TAKEN, noise).mean()


def gradient(agent):
    outputs, _ = remember(agent, jnp.zeros((STEPS, OUTPUT)))
    rest, by_outputs = derivative(eqx.tree_at(lambda a: a.memory, agent, None), outputs)
    _, memory = remember(agent, by_outputs)
    return eqx.tree_at(lambda a: a.memory, rest, memory, is_leaf=lambda x: x is None)


@ft.cache
def two_updates(name):
    """The agent after two steps of Adam (on one long vector), and the gradient of each."""
    agent, optimizer, gradients = fresh(name), optax.adam(1e-2), []
    leaves, structure = jax.tree.flatten(agent)
    ravel = lambda tree: np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])  # noqa: E731
    places, state = np.cumsum([x.size for x in leaves])[:-1], optimizer.init(ravel(agent))
    for _ in range(2):
        gradients.append(gradient(agent))
        updates, state = optimizer.update(ravel(gradients[-1]), state)
        parts = zip(np.split(ravel(agent) + np.asarray(updates), places), leaves, strict=True)
        agent = structure.unflatten([part.reshape(x.shape) for part, x in parts])
    return agent, gradients


@every_method
def test_every_array_learns_within_two_updates(name):
    after, gradients = two_updates(name)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
    pairs = zip(jax.tree.leaves_with_path(fresh(name)), jax.tree.leaves(after), strict=True)
    assert not [jax.tree_util.keystr(path) for (path, x), y in pairs if np.array_equal(x, y)]


@every_method
def test_the_first_gradient_into_a_memory_is_zero_unless_it_reconstructs(name):
    """Under Bias-HyperInit no latent matters yet; by then the second gradient is not zero."""
    first, second = ([np.any(x) for x in jax.tree.leaves(g.memory)] for g in two_updates(name)[1])
    assert any(first) == METHODS[name].reconstruct
    assert all(second)


@pytest.mark.parametrize("name", [name for name in PARAMETERS if "softmax" in name])
def test_temperatures_are_learned(name):
    after = two_updates(name)[0].memory.aggregation.aggregator
    assert fresh(name).memory.aggregation.aggregator.temperature == np.float32(0.1)
    assert after.temperature != np.float32(0.1)
