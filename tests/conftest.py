"""Settings of all tests: strict shapes, and fast compilation rather than fast programs."""

import gc
import os
from importlib.metadata import version

# Must be set before jax is imported; subprocesses inherit it. Most programs run once, so optimizing them does
# not pay, and each test process has less than one core, so dividing a program for parallel compilation does not either.
# XLA ends the process if it does not know a flag: the last two are passed only to the version that has them.
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_backend_optimization_level=0",
        *["--xla_cpu_use_fusion_emitters=false"] * version("jaxlib").startswith("0.10."),
        *["--xla_cpu_parallel_codegen_split_count=1"] * version("jaxlib").startswith("0.10."),
    ]
)
# Programs that keep no place in the source for their operations are lowered faster.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
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


# One process tests all files that use the trained run and its programs, which are then made once.
TRAINED = ["test_cli", "test_resume", "test_runner", "test_local", "test_zoo", "test_stopping"]
TRAINED += ["agents/test_api", "analysis/test_api", "storm/test_commands", "test_checkpoints"]
TRAINED += ["test_folder", "test_status", "test_events", "test_health", "test_worker"]
TRAINED += ["test_protocol", "test_race", "test_snapshots"]
# The same holds for programs of single updates, and for the evaluation of recorded results.
UPDATES = ["test_replay", "test_train", "test_half", "test_rollout", "test_losses"]
RECORDED = ["test_docs", "test_readme"]
# Every other file is tested by one process, too. The slowest ones start first, so that no process is waited for
# at the end.
SLOWEST = ["test_methods", "test_recurrent", "test_contract"]
SLOWEST += ["test_meta_episode", "test_mujoco", "test_own_envs", "test_laws", "test_examples"]
SLOWEST += ["test_report", "test_experts", "test_replay_by_task", "test_policy", "test_host"]
SLOWEST += ["test_gradients", "test_inputs", "test_scan", "test_env_twins", "test_references"]
SLOWEST += ["test_robots", "test_model", "test_probes"]


def listed(path: str, names: list[str]) -> bool:
    return path.endswith(tuple(f"/{name}.py" for name in names))


def place(path: str) -> int:
    """Returns the place of a file in the order of tests."""
    names = [*TRAINED, *UPDATES, *SLOWEST, *RECORDED]
    return next((i for i, name in enumerate(names) if listed(path, [name])), len(names))


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: place(str(item.path)))


def pytest_collection_finish():
    """Collects garbage rarely: traces and programs are many objects, and few of them are garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduler(LoadFileScheduling):
        """Gives each process whole files, and all files of a group to the same one."""

        def _split_scope(self, nodeid):
            path = super()._split_scope(nodeid)
            groups = TRAINED, UPDATES, RECORDED
            return next((names[0] for names in groups if listed(path, names)), path)

    return Scheduler(config, log)


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace):
    """Names that every docstring example may use."""
    import jax.random as jr

    doctest_namespace.update(jax=jax, jnp=jnp, jr=jr, np=np)
