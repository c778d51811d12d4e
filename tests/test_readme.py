"""The README: its tables are current, its commands are understood, its links lead somewhere."""

import re
from pathlib import Path

import pytest

from docs import tables
from tests.commands import check_names, commands, parsed

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_current(page):
    text = page.read_text()
    assert tables.refreshed(text) == text, "run `make tables` and commit the result"


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


def test_public_names_exist():
    import splagger

    for name in set(re.findall(r"splagger\.([a-z_]+)\(", README)):
        assert hasattr(splagger, name), name
