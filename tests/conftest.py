"""Settings of every test: strict shapes, and programs compiled quickly rather than well."""

import os

# Before jax is imported. What a test runs once is not worth optimizing; subprocesses inherit it.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.tiny import compiled_once, trained  # noqa: F401

jax.config.update("jax_numpy_rank_promotion", "raise")


# A file is tested by one process. These take longest, and begin first, so that none is waited for at the end.
LONGEST = ("test_examples", "test_cli", "test_resume", "test_side_by_side", "test_runner")


def pytest_collection_modifyitems(items):
    place = {f"{name}.py": index for index, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace):
    """The names that every docstring example may use."""
    import jax.random as jr

    doctest_namespace.update(jax=jax, jnp=jnp, jr=jr, np=np)
