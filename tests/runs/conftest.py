"""Fixtures of the tests of run folders."""

import shutil

import pytest

from splagger.runs.folder import RunFolder


@pytest.fixture
def copied(trained, tmp_path) -> RunFolder:
    """A copy of a finished run, which a test may damage."""
    return RunFolder(shutil.copytree(trained, tmp_path / "run"))
