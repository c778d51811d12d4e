"""The examples run as a reader would run them, with training cut to its first evaluation."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
every_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def run(path, folder):
    done = subprocess.run([sys.executable, path], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_examples():
    assert EXAMPLES


# What these do is also shown by tests/agents, tests/bridges/test_meta_episode, tests/runs and
# tests/training/test_own_envs; they compile for long.
ONLY_SLOW = (
    "02_train_on_a_tmaze",
    "03_use_a_trained_agent",
    "04_own_method",
    "05_own_jax_environment",
    "06_own_gymnasium_environment",
)


@pytest.mark.parametrize(
    "path", [p for p in EXAMPLES if p.stem not in ONLY_SLOW], ids=lambda path: path.stem
)
def test_example_runs(path, tmp_path):
    """A copy with `frames=1`: whole updates up to the first evaluation."""
    short = tmp_path / path.name
    short.write_text(re.sub(r"frames=[\d_]+", "frames=1", path.read_text()))
    assert run(short, tmp_path)


@pytest.mark.slow
@every_example
def test_example_runs_as_it_is(path, tmp_path):
    assert run(path, tmp_path)


NOTEBOOK = json.loads((ROOT / "examples" / "tour.ipynb").read_text())
CELLS = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_was_run_and_has_no_errors():
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
    outputs = [output for cell in CELLS for output in cell["outputs"]]
    assert not [one for one in outputs if one["output_type"] == "error"]
    assert sum("image/png" in one.get("data", {}) for one in outputs) == 4
    for cell in CELLS:
        compile("".join(cell["source"]), cell["id"], "exec")


def test_links_of_the_notebook_lead_somewhere():
    text = "".join("".join(c["source"]) for c in NOTEBOOK["cells"] if c["cell_type"] == "markdown")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert links and all((ROOT / "examples" / link).exists() for link in links)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path):
    """All cells run in order, as in Jupyter; what they show is looked at where they show it."""
    cells = tmp_path / "cells.py"
    cells.write_text("\n\n".join("".join(cell["source"]) for cell in CELLS))
    assert "return per meta-episode: 16.00" in run(cells, tmp_path)
