"""The variance of a product of Gaussians."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.aggregators import GaussianProduct, Max
from splagger.analysis import Options
from splagger.analysis.latents import belief_variance, holds_a_belief
from tests.analysis.memories import OUTPUTS, STEPS, small_memory, some_noise
from tests.close import assert_close


def pearl():
    return small_memory(
        encoder="pointwise", aggregator=GaussianProduct(), skip=0.0, bottleneck=True
    )


@jax.jit
def variances(memory):
    return belief_variance(memory, some_noise(memory), jr.key(0), Options())


def test_equal_precisions_give_one_over_t():
    """With zero weights, every step has the precision softplus(bias)."""
    for bias, precision in ((0.5, np.log1p(np.exp(0.5))), (-5.0, np.log1p(np.exp(-5.0)))):
        where = lambda m: (m.encoder.linear.weight, m.encoder.linear.bias)  # noqa: E731
        memory = pearl()
        constant = jnp.zeros_like(memory.encoder.linear.weight), jnp.full(OUTPUTS, bias)
        found = variances(eqx.tree_at(where, memory, constant))
        total = np.maximum(precision * np.arange(1, STEPS + 1), 0.1)  # the floor of `read`
        assert_close(found, np.repeat(1 / total[:, None], OUTPUTS // 2, axis=1), rtol=1e-4)


def test_the_variance_is_one_over_the_sum_of_precisions():
    memory = pearl()
    _, es = memory.encoder.unroll((), some_noise(memory).xs, jnp.zeros(STEPS, bool))
    precisions = np.log1p(np.exp(np.asarray(es[:, OUTPUTS // 2 :])))
    found = variances(memory)
    assert_close(found, 1 / np.maximum(np.cumsum(precisions, axis=0), 0.1), rtol=1e-4)
    assert (np.diff(np.asarray(found), axis=0) <= 0).all()


def test_only_beliefs_have_a_variance():
    assert holds_a_belief(pearl())
    assert not holds_a_belief(small_memory(aggregator=Max()))
    product = GaussianProduct()
    assert not holds_a_belief(small_memory(aggregator=product, skip=0.0))  # a projection of it
    assert not holds_a_belief(small_memory(aggregator=product, skip=0.5, bottleneck=True))
    stacked = jax.vmap(lambda key: pearl())(jr.split(jr.key(0), 2))
    assert holds_a_belief(stacked)
