"""The start of attention: one Xavier matrix for queries, keys and values, and zero biases."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.nn.attention import Attention
from splagger.nn.initializers import xavier_uniform


def test_attention_starts_like_the_authors():
    """U(±√(6/4n)) has the variance 6/12n; the output layer is U(±1/√n)."""
    size = 64
    attention = Attention.create(jr.key(0), size, heads=2)
    weights = (attention.query.weight, attention.key_weight, attention.value.weight)
    for weight in weights:
        assert float(jnp.abs(weight).max()) <= (6 / (4 * size)) ** 0.5
        np.testing.assert_allclose(weight.var(), 6 / (12 * size), rtol=0.05)
    np.testing.assert_allclose(attention.output.weight.var(), 1 / (3 * size), rtol=0.05)
    biases = (attention.query.bias, attention.value.bias, attention.output.bias)
    assert not any(bias.any() for bias in biases)
    assert len({weight.tobytes() for weight in jax.device_get(weights)}) == 3


def test_xavier_matrices_have_the_bound_of_their_size():
    weight = xavier_uniform(jr.key(0), (200, 100))
    np.testing.assert_allclose(jnp.abs(weight).max(), (6 / 300) ** 0.5, rtol=0.01)
