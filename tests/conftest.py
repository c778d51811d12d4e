"""Settings of all tests: strict shapes, and fast compilation rather than fast programs."""

import os
from importlib.metadata import version

# Must be set before jax is imported; subprocesses inherit it. Most programs run once, so optimizing them does
# not pay. XLA ends the process if it does not know a flag, and the last one was removed in version 0.11.
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_backend_optimization_level=0",
        *["--xla_cpu_use_fusion_emitters=false"] * version("jaxlib").startswith("0.10."),
    ]
)
# The test processes share compiled programs through the cache of `compiled_once`.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.4")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.tiny import compiled_once, trained  # noqa: F401

jax.config.update("jax_numpy_rank_promotion", "raise")
# Property tests try the same examples every time, and never fail because a machine is slow.
hypothesis.settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.load_profile("fixed")


# Each file is tested by one process. The slowest files start first, so that no process is waited for at the end.
# Only the second of them needs the trained run at once: the others then find its program in the cache.
SLOWEST = ["test_replay", "test_cli", "test_methods", "test_train", "test_resume", "test_examples"]
SLOWEST += ["test_api", "test_recurrent", "test_contract", "test_local", "test_runner"]
SLOWEST += ["test_meta_episode", "test_mujoco", "test_experts", "test_own_envs", "test_commands"]
SLOWEST += ["test_gradients", "test_inputs", "test_replay_by_task", "test_robots", "test_laws"]
SLOWEST += ["test_probes", "test_host", "test_half"]


def pytest_collection_modifyitems(items):
    order = {f"{name}.py": index for index, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace):
    """Names that every docstring example may use."""
    import jax.random as jr

    doctest_namespace.update(jax=jax, jnp=jnp, jr=jr, np=np)
