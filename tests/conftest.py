"""Settings of every test: strict shapes, and 64-bit off as in training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace):
    """The names that every docstring example may use."""
    import jax.random as jr

    doctest_namespace.update(jax=jax, jnp=jnp, jr=jr, np=np)
