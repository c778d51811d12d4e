"""The README: its tables are current, its commands are understood, its links lead somewhere."""

import re
from pathlib import Path

import numpy as np
import pytest

import splagger
from docs import tables
from docs.beyond_tables import board
from docs.table_parts import evidence
from splagger.aggregators import check_aggregator
from splagger.report.leaderboard import write_leaderboard
from splagger.stats.returns import returns
from splagger.zoo import RECIPES
from tests.commands import blocks, check_names, commands, parsed

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_current(page):
    text = page.read_text()
    assert tables.refreshed(text) == text, "run `make tables` and commit the result"


def test_the_recorded_leaderboard_is_current(tmp_path):
    page, _, numbers = write_leaderboard(board(), tmp_path)
    for path in (page, numbers):
        recorded = ROOT / "results" / "leaderboard" / path.name
        assert path.read_text() == recorded.read_text(), "run the command in results/README.md"


def test_the_zoo_names_the_returns_of_the_recorded_runs():
    ends = {f"{row.series.env}/{row.series.method}": row.end for row in returns(evidence())}
    for name, recipe in RECIPES.items():
        if recipe.full_size is not None:
            np.testing.assert_allclose(recipe.full_size, ends[name], atol=0.0051)


def test_every_table_is_used():
    used = {name for page in tables.PAGES for name in tables.BLOCK.findall(page.read_text())}
    assert used == set(tables.TABLES)


def test_commands_are_understood():
    lines = commands(README)
    assert len(lines) > 15
    for line in lines:
        check_names(parsed(line))


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)\s]+)\)", README):
        path = link.partition("#")[0]
        assert link.startswith("https://") or (ROOT / path).exists(), link


def test_it_is_short():
    assert len(README.split()) <= 900, "details belong in docs/"


def test_its_python_runs(monkeypatch):
    """All blocks run in order; only training, drawing and playing are replaced by calls that are recorded."""
    calls = []
    for name in ("train", "plot", "load", "watch"):
        monkeypatch.setattr(splagger, name, Recorder(name, calls))
    scope = {}
    for code in blocks(README, "python"):
        exec(code, scope)
    check_aggregator(scope["method"].aggregator)
    assert calls == ["train", "plot", "load", "watch", "train"]
    assert scope["method"].skip == 0.5


class Recorder:
    """A function that does nothing but record its name; what it returns has any attribute."""

    def __init__(self, name, calls):
        self.name, self.calls, self.attrs = name, calls, {"folder": "runs"}

    def __call__(self, *args, **options):
        self.calls.append(self.name)
        return self


def test_public_names_exist():
    for name in set(re.findall(r"splagger\.([a-z_]+)\(", README)):
        assert hasattr(splagger, name), name
