"""Runs that cannot fit into memory are refused before anything is built; those of the paper never are."""

import functools as ft
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from splagger.errors import SettingError
from splagger.paper.figures import select
from splagger.paper.reproduce import sweeps
from splagger.ppo import train
from splagger.ppo.footprint import footprint
from splagger.ppo.settings import Tunables
from splagger.runs.run import Run
from splagger.stats.evidence import Evidence
from splagger.training import capacity
from splagger.training.capacity import check_memory, memory_per_device, rough
from splagger.training.runner import execute
from tests.tiny import tiny

GB = 1e9
# Megabytes per member of the compiled block on a CPU, without our test flags: arguments and temporary buffers by
# `compiled.memory_analysis()`.
MEASURED = [
    ("t-ls-small", "splagger", {}, 10.0),
    ("t-ls-small", "pearl-vari", {}, 15.1),
    ("t-ls", "splagger", {}, 580.1),
    ("t-ls", "splagger", {"ppo.minibatches": 1}, 1451.2),
    ("t-ls", "splagger", {"ppo.envs": 64}, 2055.8),
    ("t-ls", "splagger", {"method.width": 1024}, 1210.3),
    ("t-ls", "cnp", {}, 435.1),
    ("t-ls", "transformer", {}, 1026.7),
    ("t-ls", "pearl-vari", {}, 903.7),
    ("mc-ls", "splagger", {}, 745.2),
    ("planning", "lstm", {}, 608.7),
]
QUICK = [row for row in MEASURED if row[0] == "t-ls-small"]


def check_estimate(env, method, settings, megabytes):
    config = Run.create(env, method, rates=[1e-3], seeds=1, overrides=settings).config
    assert 0.5 < footprint(config) / 1e6 / megabytes < 2
    assert rough(config) > footprint(config)


@pytest.mark.parametrize("row", QUICK, ids=str)
def test_the_estimate_is_right_within_a_factor_of_two(row):
    check_estimate(*row)


@pytest.mark.slow
@pytest.mark.parametrize("row", MEASURED, ids=str)
def test_the_estimate_is_right_within_a_factor_of_two_for_large_runs(row):
    check_estimate(*row)


@pytest.mark.slow
def test_the_estimate_agrees_with_the_compiler():
    run = Run.create("t-ls-small", "splagger", rates=[1e-3], seeds=1)
    tunables = Tunables(*(jnp.float32(0.1) for _ in Tunables._fields))
    state = jax.eval_shape(ft.partial(train.init, run.config), tunables, jr.key(0))
    block = jax.jit(ft.partial(train.block, run.config), donate_argnums=1)
    used: Any = block.lower(tunables, state).compile().memory_analysis()
    measured = used.temp_size_in_bytes + used.argument_size_in_bytes
    assert 0.4 < footprint(run.config) / measured < 2.5  # without optimizations, as in all tests


@pytest.mark.slow
def test_every_grid_of_the_paper_fits_into_32_gigabytes():
    """The largest has 75 runs of PEARL; one can train them in parts."""
    plans = sweeps(select("all"), Evidence([]))
    assert len(plans) > 50
    for plan in plans:
        check_memory(plan.run, available=32 * GB)


@pytest.mark.parametrize("method", ["splagger", "transformer"])  # the latter is the largest
def test_the_grids_of_t_ls_fit_into_16_gigabytes(method):
    check_memory(Run.create("t-ls", method), available=16 * GB)


REFUSED = [
    ({"seeds": 1000}, r"t-ls · splagger: 5,000 runs need about [\d,]+ GB of memory, and there are"),
    ({"seeds": 1000}, r"16\.0 GB; \d\d would fit: use fewer seeds or rates"),
    ({"overrides": {"ppo.envs": 10**6}}, "reduce ppo.envs, ppo.steps"),
    ({"overrides": {"method.width": 10**6}}, "the sizes of the method and the network"),
    ({"overrides": {"network.hidden": (10**6, 10**6)}}, "about .* GB of memory"),
    ({"overrides": {"ppo.eval_tasks": 10**6}}, "about .* GB of memory"),
    ({"overrides": {"ppo.epochs": 10**6}}, "about .* GB of memory"),
]


@pytest.mark.parametrize("change, message", REFUSED, ids=str)
def test_a_run_that_cannot_fit_is_refused_with_what_it_needs(change, message):
    with pytest.raises(SettingError, match=message):
        check_memory(Run.create("t-ls", "splagger", **change), available=16 * GB)


def test_a_refused_run_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(capacity, "memory_per_device", lambda: 1e6)
    with pytest.raises(SettingError, match=r"4 runs need about 0\.0 GB of memory"):
        execute(tiny(), tmp_path, show=False)
    assert not list(tmp_path.iterdir())


def test_small_runs_are_not_traced(monkeypatch):
    monkeypatch.setattr(train, "init", None)
    check_memory(tiny())


def test_this_machine_has_memory():
    assert 1e9 < memory_per_device() < 1e14
