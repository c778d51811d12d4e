"""NumPy functions in compiled programs: equal to `jax.pure_callback`, batched, with errors that have a message."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splagger.envs import host_call
from splagger.envs.host_call import call_on_host

SHAPES = (
    jax.ShapeDtypeStruct((3,), jnp.float32),
    jax.ShapeDtypeStruct((), jnp.int32),
    jax.ShapeDtypeStruct((2,), jnp.uint32),
    jax.ShapeDtypeStruct((), bool),
)
calls = []


def numbers(x, words, empty):
    """Returns four arrays of different types; leading axes are a batch."""
    calls.append(x.shape)
    assert empty.shape == (*x.shape[:-1], 0)
    return 2 * x, np.int32(x.sum(-1)), words[..., ::-1], words[..., 0] > 1


def refuse(x):
    raise ValueError("there is no such robot")


def loop(x):
    """Calls the function in each step of a loop, so that XLA's buffers differ between steps."""

    def one(carry, _):
        new, total, words, flag = call_on_host(numbers, SHAPES, *carry, jnp.zeros(0))
        return (new, words), (total, words, flag)

    return jax.lax.scan(one, (x, jnp.array([1, 2**31 + 1], jnp.uint32)), length=5)


def test_a_call_equals_a_callback_of_jax(monkeypatch):
    batch = jnp.arange(24.0).reshape(2, 4, 3)
    ours = jax.device_get(jax.jit(jax.vmap(jax.vmap(loop)))(batch))
    monkeypatch.setattr(host_call, "_platform", lambda: None)
    theirs = jax.device_get(jax.jit(jax.vmap(jax.vmap(loop)))(batch))
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    np.testing.assert_array_equal(ours[0][0], 32 * batch)


def test_a_batch_is_one_call():
    calls.clear()
    jax.block_until_ready(jax.jit(jax.vmap(jax.vmap(loop)))(jnp.ones((2, 4, 3))))
    assert calls == [(2, 4, 3)] * 5


def test_it_works_without_compilation():
    assert (
        call_on_host(numbers, SHAPES, jnp.ones(3), jnp.zeros(2, jnp.uint32), jnp.zeros(0))[1] == 3
    )


def test_an_error_ends_the_program_with_its_message(caplog):
    with (
        caplog.at_level(logging.CRITICAL),
        pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: there is no such robot"),
    ):
        jax.block_until_ready(jax.jit(lambda x: call_on_host(refuse, SHAPES[:1], x))(jnp.ones(3)))


def test_a_function_is_registered_once():
    names = {host_call._register(numbers, "cpu") for _ in range(3)}
    assert len(names) == 1 and host_call._register(refuse, "cpu") not in names
