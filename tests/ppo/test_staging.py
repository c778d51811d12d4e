"""Computations in two stages: the same results, with all that is known early done by the first stage."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.ppo import rollout
from splagger.ppo.staging import in_two_stages
from splagger.registry import ENVS

RANDOM = "random_bits"


@pytest.mark.parametrize("name", ["t-ls", "t-latent", "planning", "mc-ls"])
def test_steps_of_an_environment_draw_all_random_numbers_early(name, monkeypatch):
    """On a GPU, a rollout computes the first stage before its loop; the second one does not draw anything."""
    monkeypatch.setattr(rollout, "on_gpu", lambda: True)
    env = ENVS[name].meta
    state, noise = env.reset(jr.key(0)), env.sample_noise(jr.key(1))
    first, second = rollout.stages(env, state)

    @jax.jit
    def both(noise, state, action):
        return env.advance(noise, state, action), second(first(noise), (state, action))

    for seed in range(20):
        plain, staged = both(env.sample_noise(jr.key(seed)), state, jnp.int32(seed % 4))
        jax.tree.map(np.testing.assert_array_equal, plain, staged)
        state = plain[0]
    whole = jax.make_jaxpr(env.advance)(noise, state, jnp.int32(0))
    rest = jax.make_jaxpr(second)(first(noise), (state, jnp.int32(0)))
    assert RANDOM in str(whole) and RANDOM not in str(rest)


def test_results_may_be_early_late_or_constant():
    def function(early, late):
        x, y = early
        return {"early": jnp.sin(x), "late": late * y, "constant": jnp.arange(3) + 1, "given": x}

    args = (jnp.ones(2), jnp.float32(3)), jnp.full(4, 2.0)
    first, second = in_two_stages(function, *args)
    passed = first(args[0])
    assert sorted(x.shape for x in passed) == [(), (2,), (2,)]
    jax.tree.map(np.testing.assert_array_equal, second(passed, args[1]), function(*args))


def test_calls_are_split_too():
    """A jitted function inside is inlined: what it computes from early arguments alone is early."""
    inner = jax.jit(lambda x, y: jnp.exp(x) * y)
    first, second = in_two_stages(
        lambda x, y: inner(x, y) + inner(x, 2 * y), jnp.ones(2), jnp.ones(2)
    )
    assert "exp" not in str(jax.make_jaxpr(second)(first(jnp.ones(2)), jnp.ones(2)))
    np.testing.assert_allclose(second(first(jnp.ones(2)), jnp.ones(2)), 3 * np.exp(1), rtol=1e-6)
