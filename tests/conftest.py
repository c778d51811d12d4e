"""Settings of every test: strict shapes, and programs compiled quickly rather than well."""

import os

# Before jax is imported. What a test runs once is not worth optimizing; subprocesses inherit it.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()
)

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
