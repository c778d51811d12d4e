"""Actions of several discrete numbers: the definition in NumPy, and the laws of a distribution."""

import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.errors import SettingError
from splagger.policy import Categorical, ProductOfCategoricals
from splagger.policy.distributions import distribution_of
from splagger.spaces import MultiDiscrete

SIZES = (2, 4, 1, 3)
LOGITS = np.random.default_rng(0).normal(size=sum(SIZES)).astype(np.float32) * 2
EVERY = list(itertools.product(*map(range, SIZES)))


def naive_parts():
    """The probabilities of each number, by their definition."""
    ends = np.cumsum(SIZES)[:-1]
    return [np.exp(part) / np.exp(part).sum() for part in np.split(LOGITS.astype(float), ends)]


def product():
    return ProductOfCategoricals(jnp.asarray(LOGITS), SIZES)


def test_log_probabilities_are_those_of_independent_numbers():
    log_prob = jax.jit(jax.vmap(product().log_prob))(jnp.array(EVERY))
    expected = [sum(np.log(p[a]) for p, a in zip(naive_parts(), e, strict=True)) for e in EVERY]
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.exp(log_prob).sum(), 1, rtol=1e-5)


def test_the_entropy_is_that_of_all_actions():
    probability = np.array(
        [np.prod([p[a] for p, a in zip(naive_parts(), e, strict=True)]) for e in EVERY]
    )
    np.testing.assert_allclose(
        product().entropy(), -(probability * np.log(probability)).sum(), rtol=1e-5
    )


def test_probabilities_and_mode():
    np.testing.assert_allclose(product().probabilities(), np.concatenate(naive_parts()), rtol=1e-5)
    assert product().mode().tolist() == [int(p.argmax()) for p in naive_parts()]


def test_samples_have_the_probabilities():
    samples = jax.jit(jax.vmap(product().sample))(jr.split(jr.key(0), 20_000))
    for index, expected in enumerate(naive_parts()):
        found = np.bincount(samples[:, index], minlength=len(expected)) / len(samples)
        np.testing.assert_allclose(found, expected, atol=0.015)


def test_gradients_are_finite_and_follow_the_chosen_values():
    action = jnp.array([1, 3, 0, 2])
    grad = jax.grad(lambda logits: ProductOfCategoricals(logits, SIZES).log_prob(action))(
        product().logits
    )
    expected = np.asarray(MultiDiscrete(SIZES).encode(action)) - np.concatenate(naive_parts())
    np.testing.assert_allclose(grad, expected, rtol=1e-4, atol=1e-6)
    entropy = jax.grad(lambda logits: ProductOfCategoricals(logits, SIZES).entropy())
    assert np.isfinite(entropy(product().logits)).all()


def test_one_number_is_a_categorical():
    one, other = ProductOfCategoricals(jnp.asarray(LOGITS), (10,)), Categorical(jnp.asarray(LOGITS))
    np.testing.assert_allclose(
        one.log_prob(jnp.array([4])), other.log_prob(jnp.int32(4)), rtol=1e-6
    )
    np.testing.assert_allclose(one.entropy(), other.entropy(), rtol=1e-6)


def test_a_space_has_one_hot_vectors_side_by_side():
    space = MultiDiscrete((2, 3))
    assert space.size == 5 and space.zero().shape == (2,) and space.noise(jr.key(0)).shape == (5,)
    assert space.encode(jnp.array([0, 2])).tolist() == [1, 0, 0, 0, 1]
    assert isinstance(distribution_of(space, jnp.zeros(5), None), ProductOfCategoricals)
    with pytest.raises(SettingError, match="at least 1 value"):
        MultiDiscrete((2, 0))
