"""From the memory's output to action and value: latents, hypernetwork, distributions."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.nn import Moments
from splagger.nn.gpu.number_types import HALF
from splagger.policy import (
    ActorCritic,
    Belief,
    Categorical,
    Deterministic,
    DiagonalGaussian,
    Gaussian,
    Hypernetwork,
    HyperPolicy,
)
from splagger.policy.hypernetwork import LinearHeads
from splagger.spaces import Continuous, Discrete
from tests.close import assert_close
from tests.parity import numpy_models as naive

OBS, LATENT, EMBEDDED, STATE, HIDDEN = 3, 6, 4, 7, (8, 5)
SPACES = {"discrete": Discrete(4), "continuous": Continuous(2)}
create_base = jax.jit(ActorCritic.create, static_argnums=(1, 2, 3))
every_space = pytest.mark.parametrize("space", SPACES)


@pytest.fixture
def normal():
    """Returns normal(*shape), which draws new numbers per call, the same ones in every run of a test."""
    rng = np.random.default_rng(0)
    return lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)


@ft.cache
def random_policy(space):
    """Returns a policy with random weights, so that every head of its hypernetwork matters."""
    make = ft.partial(HyperPolicy.create, jr.key(0), OBS, LATENT, SPACES[space])
    shapes = jax.eval_shape(lambda: make(STATE, EMBEDDED, HIDDEN))
    rng = np.random.default_rng(1)
    return jax.tree.map(lambda leaf: jnp.float32(0.5 * rng.normal(size=leaf.shape)), shapes)


def twin_of(policy):
    params = {
        name: [(layer.weight.transpose(1, 2, 0), layer.bias) for layer in mlp.layers]
        for name, mlp in vars(policy.hypernetwork.heads).items()
    }
    for name, layer in (("state", policy.state_embedding), ("latent", policy.latent_embedding)):
        params |= {f"w_{name}": layer.weight, f"b_{name}": layer.bias}
    return jax.tree.map(lambda x: np.asarray(x, np.float64), params)


@every_space
def test_the_lazy_policy_equals_the_generated_one_with_its_gradients(space, normal):
    args = random_policy(space).hypernetwork, normal(EMBEDDED), normal(STATE)
    cotangents = normal(SPACES[space].size), normal()

    def differentiate(form):
        outputs, vjp = jax.vjp(lambda heads, z, x: form(heads, z)(x), *args)
        return outputs, vjp(cotangents)

    forms = Hypernetwork.generate, Hypernetwork.policy
    generated, lazy = jax.jit(lambda: [differentiate(form) for form in forms])()
    assert_close(generated, lazy, rtol=1e-5, atol=1e-5)


@every_space
def test_the_policy_matches_its_definition(space, normal):
    policy, obs, latent = random_policy(space), normal(OBS), normal(LATENT)
    run = jax.jit(lambda p, *args: (p(*args), p.distribution(*args)))
    (distribution, value), acted = run(policy, obs, latent)
    numbers, expected = naive.policy_forward(np.float64(obs), np.float64(latent), twin_of(policy))
    assert_close(distribution.mean if space == "continuous" else distribution.logits, numbers)
    assert_close(value, expected)
    assert_close(acted, distribution)
    assert space == "discrete" or distribution.log_std.tolist() == policy.log_std.tolist()


@every_space
def test_a_batch_equals_its_samples_with_their_gradients(space, normal):
    """Compares the hand-written derivative with autodiff through the definition."""
    args = random_policy(space), normal(9, OBS), normal(9, LATENT)
    weights = normal(9)

    def loss(forms, policy, obs, latents):
        distribution, values = forms(policy, obs, latents)
        return (jax.vmap(lambda d: d.entropy())(distribution) * weights + values * weights**2).sum()

    def samples(policy, obs, latents):
        def one(obs, latent):
            z, x = policy._embed(obs, latent)
            numbers, value = policy.hypernetwork.generate(z)(x)
            return policy._distribution(numbers), value

        return jax.vmap(one)(obs, latents)

    both = [
        jax.jit(jax.value_and_grad(ft.partial(loss, forms), argnums=(0, 1, 2)))(*args)
        for forms in (HyperPolicy.evaluate_batch, samples)
    ]
    assert_close(*both, rtol=1e-4, atol=1e-5)
    _, values = jax.jit(HyperPolicy.evaluate_batch)(*args)
    assert_close(jax.jit(HyperPolicy.value_batch)(*args), values)


@every_space
def test_half_precision_changes_a_batch_no_more_than_rounding(space, normal, monkeypatch):
    args = random_policy(space), normal(9, OBS), normal(9, LATENT)

    def differentiate():
        loss = lambda *args: HyperPolicy.value_batch(*args).sum()  # noqa: E731
        return jax.jit(jax.value_and_grad(lambda *args: loss(*args), argnums=(0, 1, 2)))(*args)

    full = differentiate()
    monkeypatch.setattr("splagger.policy.hypernetwork.matmul_types", lambda: HALF)
    half = differentiate()
    for exact, rounded in zip(jax.tree.leaves(full), jax.tree.leaves(half), strict=True):
        assert rounded.dtype == exact.dtype
        scale = np.abs(exact).max() + 1e-6
        np.testing.assert_allclose(rounded / scale, exact / scale, atol=0.02)
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (full, half)), strict=True))


@every_space
def test_a_prepared_policy_acts_the_same(space, normal, monkeypatch):
    policy, obs, latent = random_policy(space), normal(OBS), normal(LATENT)
    monkeypatch.setattr("splagger.policy.hypernetwork.matmul_types", lambda: HALF)
    heads = policy.hypernetwork.heads
    ready = Hypernetwork(
        jax.tree.map(
            lambda h: h.prepared(), heads, is_leaf=lambda node: isinstance(node, LinearHeads)
        )
    )
    assert {leaf.dtype.name for leaf in jax.tree.leaves(ready)} == {"float16", "float32"}
    prepared = eqx.tree_at(lambda p: p.hypernetwork, policy, ready)
    acted = [jax.tree.leaves(p.distribution(obs, latent))[0] for p in (policy, prepared)]
    np.testing.assert_allclose(*acted, rtol=5e-3, atol=5e-3)


@every_space
def test_every_latent_starts_as_the_same_base_policy(space, normal):
    """Bias-HyperInit: the latent has no effect, and no gradient, to the last bit."""
    base = create_base(jr.key(0), STATE, HIDDEN, SPACES[space])
    x, z = normal(STATE), 10 * normal(EMBEDDED)

    def generate_and_run(base, z):
        hypernetwork = Hypernetwork.create(base, EMBEDDED)
        return hypernetwork.generate(z), hypernetwork.policy(z)(x), base(x)

    generated, lazy, expected = jax.jit(generate_and_run)(base, z)
    assert_close(generated, base, rtol=0, atol=0)
    assert_close(lazy, expected)
    jacobian = jax.jit(jax.jacrev(generate_and_run, argnums=1))(base, z)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(jacobian))


@every_space
def test_the_base_policy_starts_as_specified(space):
    base = create_base(jr.key(1), 256, (256, 128), SPACES[space])
    for layer in (*base.actor.layers, *base.critic.layers):
        np.testing.assert_array_equal(layer.bias, np.zeros(layer.bias.shape))
    for layer in (*base.actor.layers[:-1], *base.critic.layers[:-1]):
        assert_close(np.linalg.norm(layer.weight, axis=1), np.full(len(layer.bias), 5 / 3))
    head, critic = base.actor.layers[-1].weight, base.critic.layers[-1].weight
    if space == "discrete":
        assert_close(head @ head.T, 1e-4 * np.eye(4), rtol=1e-4, atol=1e-9)
    else:
        assert_close(np.linalg.norm(head, axis=1), np.ones(2))
    assert 0.9 * (6 / 128) ** 0.5 < np.abs(critic).max() <= (6 / 128) ** 0.5
    assert np.std(critic) == pytest.approx((2 / 128) ** 0.5, rel=0.15)


def test_embeddings_start_uniform_and_the_deviation_at_one(normal):
    policy = jax.jit(lambda: HyperPolicy.create(jr.key(0), 9, 25, Continuous(2), 64, 16, HIDDEN))()
    for layer, bound in ((policy.state_embedding, 1 / 3), (policy.latent_embedding, 1 / 5)):
        for array in (layer.weight, layer.bias):
            assert 0.8 * bound < np.abs(array).max() <= bound
    assert DiagonalGaussian(normal(2), policy.log_std).std.tolist() == [1.0, 1.0]


def test_categorical_matches_its_definition(normal):
    distribution = Categorical(3 * normal(4))
    exact = np.float64(distribution.logits)
    expected = [naive.categorical_log_prob(exact, a) for a in range(4)]
    assert_close(jax.vmap(distribution.log_prob)(jnp.arange(4)), np.array(expected))
    assert_close(distribution.entropy(), naive.categorical_entropy(exact))
    assert int(distribution.mode()) == int(np.argmax(expected))
    draws = jax.vmap(distribution.sample)(jr.split(jr.key(0), 20_000))
    assert_close(np.bincount(draws, minlength=4) / 20_000, np.exp(expected), atol=0.015)


@pytest.mark.parametrize("shift", [0.0, -30.0], ids=["ordinary", "floored deviation"])
def test_gaussian_matches_its_definition(shift, normal):
    mean, log_std = jnp.zeros(3) if shift else normal(3), 0.5 * normal(3) + shift
    distribution = DiagonalGaussian(mean, log_std)
    action = mean + distribution.std * normal(3)
    exact = [np.float64(x) for x in (mean, log_std, action)]
    assert_close(distribution.log_prob(action), naive.gaussian_log_prob(*exact), rtol=1e-4)
    assert_close(distribution.entropy(), naive.gaussian_entropy(exact[1]))
    assert_close(distribution.mode(), mean)
    draws = np.asarray(jax.vmap(distribution.sample)(jr.split(jr.key(0), 20_000)))
    standard = (draws - np.asarray(mean)) / np.asarray(distribution.std)
    assert_close(standard.mean(axis=0), np.zeros(3), atol=0.03)
    assert_close(standard.std(axis=0), np.ones(3), atol=0.03)


def test_kl_matches_its_definition_and_is_never_negative(normal):
    latent, pairs = Gaussian(), normal(50, 2, LATENT)
    kls = jax.vmap(lambda pair: latent.kl(pair[0], pair[1]))(pairs)
    halves = np.float64(pairs).reshape(50, 4, LATENT // 2)
    assert_close(kls, np.array([naive.gaussian_kl(*row) for row in halves]), rtol=1e-4, atol=1e-5)
    assert float(kls.min()) > 0
    q, expected = pairs[0, 0], naive.gaussian_kl(*halves[0, :2], 0.0, 0.0)
    assert_close(latent.kl(q, latent.prior(q)), expected, rtol=1e-4)
    assert float(latent.kl(q, q)) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("latent", [Deterministic(), Belief()])
def test_a_latent_without_noise_equals_the_output(latent, normal):
    """Belief normalizes with moments that have not seen any data, which changes nothing."""
    output, moments = normal(LATENT), Moments.create(LATENT)
    for noise in (jnp.zeros(0), normal(LATENT)):
        np.testing.assert_array_equal(latent(output, noise, moments), output)
    assert latent.size(LATENT) == LATENT
    assert float(latent.kl(output, -output)) == 0.0


def test_gaussian_latent_is_reparameterized(normal):
    """mean + exp(log variance / 2)·noise, whose derivative reaches both halves."""
    output, noise, moments = normal(LATENT), normal(LATENT // 2), Moments.create(LATENT)
    latent = lambda output: Gaussian()(output, noise, moments)  # noqa: E731
    mean, log_variance = np.split(np.float64(output), 2)
    scaled = np.exp(log_variance / 2) * noise
    assert_close(latent(output), mean + scaled)
    expected = np.concatenate([np.eye(3), np.diag(scaled / 2)], axis=1)
    assert_close(jax.jacrev(latent)(output), expected)
    assert Gaussian().size(LATENT) == LATENT // 2


def test_belief_is_normalized_and_passes_no_gradient(normal):
    moments = Moments(normal(LATENT), jnp.abs(normal(LATENT)) + 0.1, jnp.float32(5))
    output, call = normal(LATENT), lambda output: Belief()(output, jnp.zeros(0), moments)
    expected = (np.float64(output) - moments.mean) / np.sqrt(np.float64(moments.variance) + 1e-8)
    assert_close(call(output), expected)
    assert not np.any(jax.jacrev(call)(output))


def test_moments_of_batches_equal_those_of_all_rows(normal):
    batches = [3.0 + normal(n, 2) * jnp.array([[1.0, 5.0]]) for n in (40, 1, 200)]
    moments = ft.reduce(Moments.update, batches, Moments.create(2))
    rows = np.concatenate(batches).astype(np.float64)
    expected = naive.running_moments_update(np.zeros(2), np.ones(2), 1e-4, rows)
    assert_close((moments.mean, moments.variance, moments.count), expected, rtol=1e-4)
    assert_close((moments.mean, moments.variance), (rows.mean(0), rows.var(0)), rtol=1e-3)
