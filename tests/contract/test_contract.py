"""What must never change by moving code around: recorded results, saved agents, and the numbers of a small run.

`golden.json`, `run/` and `agent.npz` were written by `python -m tests.contract.make` with the first published
layout of the package. A test that fails here means that somebody's files no longer mean what they meant.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas
import pytest

import splagger
from splagger.paper.claims import evaluate_claims
from splagger.stats.evidence import Evidence
from tests.contract.make import (
    AGENT,
    GOLDEN,
    RESULTS,
    RUN,
    actions_of,
    digests,
    figure_numbers,
    small_run,
    verdicts,
)

KNOWN = json.loads(GOLDEN.read_text())
NEWER = ["reward_per_step"]  # columns of curves.csv that the old run does not have


@pytest.fixture(scope="module")
def evidence():
    return Evidence.read(RESULTS, analyses=RESULTS / "analysis")


@pytest.fixture
def users_flags(monkeypatch):
    """Training programs are compiled as for a user; other tests compile them faster."""
    monkeypatch.setenv("XLA_FLAGS", "")


def test_every_recorded_run_keeps_its_digest():
    found = digests()
    assert {name: found.get(name) for name in KNOWN["digests"]} == KNOWN["digests"]


def test_figures_keep_their_numbers(evidence):
    assert_equal(figure_numbers(evidence), KNOWN["figures"])


def test_claims_keep_their_verdicts(evidence):
    assert_equal(verdicts(evaluate_claims(evidence)), KNOWN["verdicts"])


def assert_equal(found, known, rtol=1e-6):
    """Nested dictionaries and lists are equal, up to rounding of their floats."""
    if isinstance(known, dict):
        assert found.keys() == known.keys()
        for name in known:
            assert_equal(found[name], known[name], rtol)
    elif isinstance(known, list):
        assert len(found) == len(known)
        for pair in zip(found, known, strict=True):
            assert_equal(*pair, rtol)
    else:
        assert found == (pytest.approx(known, rtol, 1e-9) if isinstance(known, float) else known)


def test_public_names_stay():
    missing = [name for name in KNOWN["public"] if not hasattr(splagger, name)]
    assert not missing


def test_an_old_checkpoint_is_loaded():
    (folder,) = RUN.glob("*/*/*/")
    assert actions_of(splagger.load(folder)) == KNOWN["actions"]


def test_an_old_agent_file_is_loaded():
    assert actions_of(splagger.load(AGENT)) == KNOWN["actions"]


def test_an_old_run_goes_on(tmp_path, users_flags):
    """More frames for a folder of the old layout: its first rows stay, later ones are added."""
    shutil.copytree(RUN, tmp_path / "run")
    before = curves(RUN)
    small_run(tmp_path / "run", frames=4 * 320)
    after = curves(tmp_path / "run")
    assert len(after) == 2 * len(before) - 2  # the evaluation before training is there once
    old, new = after.iloc[: len(before)], after.iloc[len(before) :]
    pandas.testing.assert_frame_equal(old.drop(columns=NEWER), before)
    assert old[NEWER].isna().all(axis=None) and new[NEWER].notna().all(axis=None)


def test_a_small_run_ends_with_the_same_numbers(tmp_path, users_flags):
    """Bit for bit on the kind of machine that wrote them; on others up to rounding."""
    small_run(tmp_path)
    new, old = curves(tmp_path).drop(columns=NEWER), curves(RUN)
    assert list(new.columns) == list(old.columns)
    if KNOWN["machine"] == machine():
        pandas.testing.assert_frame_equal(new, old, check_exact=True)
    else:
        np.testing.assert_allclose(new.to_numpy(), old.to_numpy(), rtol=0.05, atol=0.05)


def curves(root: Path) -> pandas.DataFrame:
    (path,) = root.glob("*/*/*/curves.csv")
    return pandas.read_csv(path)


def machine() -> dict:
    from tests.contract.make import machine

    return machine()
