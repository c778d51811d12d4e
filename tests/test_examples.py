"""The examples run as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
# What runs for seconds is compiled quickly rather than well: this saves two fifths of the compiler's time.
QUICK = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false"}


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    command, settings = [sys.executable, path], os.environ | QUICK
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout
