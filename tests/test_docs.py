"""The documentation: links lead somewhere, commands and code are understood, tables are complete."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from docs import catalog_tables, paper_tables, tables
from docs.agents_tables import _fall
from docs.table_parts import evidence, verdicts
from splagger import METHODS, cli
from splagger.paper.claims import CLAIMS
from splagger.paper.figures import FIGURES
from splagger.paper.forest import claims_csv
from splagger.plots.export import drawable, table
from tests import browser
from tests.commands import FENCE, blocks, check_names, commands, parsed

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))


def anchors(page):
    """What the headings of a page are called by its links."""
    text = FENCE.sub("", page.read_text())
    headings = re.findall(r"^#+ (.*?)(?: \{ #([\w-]+) \})?$", text, re.MULTILINE)
    return {
        name or re.sub(r"[^\w -]", "", words).lower().replace(" ", "-") for words, name in headings
    }


@every_page
def test_links_lead_somewhere(page):
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        place, _, anchor = link.partition("#")
        if link.startswith("https://") or place.startswith("images/figures/"):
            continue
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_figures_of_the_paper_are_linked_and_show_the_recorded_results():
    """Each picture in results/figures lies beside a CSV of what it shows."""
    folder = ROOT / "results/figures"
    drawn = {name: drawable(figure, evidence()) for name, figure in FIGURES.items()}
    found = {name: table(lines) for name, lines in drawn.items() if lines}
    linked = re.findall(r"results/figures/([\w-]+)\.png", paper_tables.figures())
    assert linked == list(found)
    found["claims"] = claims_csv(verdicts())
    for name, shown in found.items():
        assert (folder / f"{name}.csv").read_text() == shown, f"splagger figure {name} results"
    assert {path.stem for path in folder.glob("*.png")} == set(found)


def test_pictures_of_all_claims_are_linked(monkeypatch):
    monkeypatch.setattr(paper_tables, "claims_picture", lambda *_: b"")
    links = set(re.findall(r"images/figures/([\w-]+)\.svg", (DOCS / "claims.md").read_text()))
    assert links == set(paper_tables.pictures())


def test_every_page_is_in_the_navigation():
    def files(entry):
        if isinstance(entry, str):
            return [entry]
        parts = entry.values() if isinstance(entry, dict) else entry
        return [name for part in parts for name in files(part)]

    listed = files(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


def imported(code):
    """Returns (module, name) of everything that this code imports from the package."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in nodes if (node.module or "").partition(".")[0] == "splagger"]
    return [(node.module, alias.name) for node in ours for alias in node.names]


@every_page
def test_python_can_be_compiled_and_its_imports_exist(page):
    for code in blocks(page.read_text(), "python"):
        assert compile(code, page.name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for module, name in imported(code):
            assert hasattr(importlib.import_module(module), name), f"{page.name}: {module}.{name}"


@every_page
def test_commands_are_understood(page):
    """Every command is parsed, and what it names is looked up; nothing runs."""
    for line in commands(page.read_text()):
        check_names(parsed(line))


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_a_command_has_an_example_that_works(name):
    for example in re.findall("Example: (.*)", cli.COMMANDS[name].__doc__ or ""):
        assert example.startswith(f"splagger {name} ".replace("analyze", "analyse"))
        check_names(parsed(example))


def test_getting_started_shows_every_command():
    shown = {line.split()[1] for line in commands((DOCS / "index.md").read_text())}
    wanted = set(re.findall(r'subcommand\("(\w+)"\)', Path(cli.__file__).read_text()))
    assert wanted - shown == {"analyze"}  # the same as analyse


@every_page
def test_documented_objects_exist(page):
    for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE):
        module, _, attribute = name.rpartition(".")
        found = getattr(importlib.import_module(module), attribute)
        assert found.__doc__, f"{name} has no docstring"


def test_the_table_of_methods_has_them_all():
    shown = catalog_tables.methods()
    assert [name for name in METHODS if f"`{name}`" not in shown] == []
    assert len(shown.splitlines()) == 2 + len({id(method) for method in METHODS.values()})


def test_methods_are_found_in_the_figures_that_show_them():
    (row,) = [
        line for line in catalog_tables.methods().splitlines() if line.startswith("| `transformer`")
    ]
    assert row.endswith("| [13](reproduce.md#transformer) |")
    (row,) = [
        line for line in catalog_tables.methods().splitlines() if line.startswith("| `pearl-gru`")
    ]
    assert row.endswith("| – |")


def test_every_figure_has_a_command_and_its_panels():
    shown = paper_tables.figures()
    for figure in FIGURES.values():
        assert f"`splagger figure {figure.name}`" in shown
        assert all(f"| {panel.title} |" in shown for panel in figure.panels)


def test_every_claim_has_a_verdict():
    shown = paper_tables.claims_decided() + paper_tables.claims_undecided()
    assert [claim.name for claim in CLAIMS if f"| {claim.sentence} |" not in shown] == []


def test_an_unknown_table_is_an_error():
    with pytest.raises(ValueError, match="no table 'nothing'"):
        tables.refreshed("<!-- table: nothing -->\n<!-- end -->")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning is an error."""
    pytest.importorskip("mkdocs", reason="the site is built where the extra `docs` is installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_site_fetches_nothing(site):
    """No page loads anything from elsewhere; links to read there are fine."""
    loading = re.compile(
        r"<(?:link|script|img|iframe|source)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//"
    )
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    assert [str(page) for page in pages if loading.search(page.read_text())] == []
    sheets = (sheet.read_text() for sheet in site.rglob("*.css"))
    assert not any(re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet) for sheet in sheets)


@pytest.mark.slow
@pytest.mark.skipif(browser.installed() is None, reason=browser.ABSENT)
def test_the_search_works_from_a_folder(site, tmp_path):
    chromium = browser.Browser(tmp_path)
    try:
        chromium.open((site / "index.html").as_uri())
        found = chromium.evaluate(SEARCH)
        urls = [e["request"]["url"] for e in chromium.seen("Network.requestWillBeSent")]
    finally:
        chromium.close()
    assert found and "hypernetwork" in found.lower()
    assert not [url for url in urls if url.startswith("http")]


SEARCH = """new Promise(resolve => {
    const field = document.querySelector(".md-search__input")
    const list = document.querySelector(".md-search-result__list")
    new MutationObserver(() => resolve(list.innerText)).observe(list, {childList: true})
    field.focus()
    field.value = "hypernetwork"
    field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true, key: "k"}))
    setTimeout(() => resolve(""), 15000)
})"""


def test_a_fall_begins_where_an_agent_that_has_learned_returns_little():
    """The table of falls in docs/fidelity.md takes the update on the way down, not a single bad evaluation before."""
    returns = np.full(400, 16.0)
    returns[:40] = 2.0
    assert _fall(returns) is None
    returns[150] = 3.0  # one bad evaluation
    assert _fall(returns) is None
    returns[300:] = 5.0
    returns[300] = 14.0
    assert _fall(returns) == 301
    assert _fall(np.full(400, 2.0)) is None
