"""The documentation: links lead somewhere, commands and code are understood, tables say all there is."""

import ast
import importlib
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tyro
import yaml

from docs import generated
from splagger import ENVS, METHODS, cli
from splagger.analysis import ANALYSES
from splagger.paper.claims import CLAIMS
from splagger.paper.figures import FIGURES, select
from tests import browser

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))


def blocks(text, language):
    return [textwrap.dedent(body) for _, lang, body in FENCE.findall(text) if lang == language]


def commands(text):
    """The lines of a page that call the command line, continued ones joined."""
    lines = "\n".join(blocks(text, "")).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("splagger ")]


def anchors(page):
    """What the headings of a page are called by its links."""
    text = FENCE.sub("", generated.expand(page.read_text()))
    headings = re.findall(r"^#+ (.*?)(?: \{ #([\w-]+) \})?$", text, re.MULTILINE)
    return {
        name or re.sub(r"[^\w -]", "", words).lower().replace(" ", "-") for words, name in headings
    }


@every_page
def test_links_lead_somewhere(page):
    for link in LINK.findall(FENCE.sub("", generated.expand(page.read_text()))):
        place, _, anchor = link.partition("#")
        if link.startswith("https://") or place.startswith("images/figures/"):
            continue
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_linked_figures_are_drawn():
    links = set(re.findall(r"images/figures/([\w-]+)\.svg", generated.figures()))
    assert links and links == set(generated.pictures())


def test_every_page_is_in_the_navigation():
    def files(entry):
        if isinstance(entry, str):
            return [entry]
        parts = entry.values() if isinstance(entry, dict) else entry
        return [name for part in parts for name in files(part)]

    listed = files(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


@every_page
def test_python_can_be_compiled(page):
    for code in blocks(page.read_text(), "python"):
        ast.parse(code)


@every_page
def test_commands_are_understood(page):
    """Every command is parsed, and what it names is looked up; nothing runs."""
    for line in dict.fromkeys(commands(generated.expand(page.read_text()))):
        words = shlex.split(line, comments=True)[1:]
        command = tyro.cli(cli.Command, args=words, config=(tyro.conf.OmitArgPrefixes,))
        check_names(command)


def check_names(command):
    named = vars(command)
    for env in named.get("envs", ()) or [named.get("env")]:
        assert env in {None, "ENV"} | set(ENVS) or ":" in env
    if isinstance(command, cli.Train | cli.Bench | cli.Sweep):
        chosen = named.get("methods") or [command.method]
        assert set(chosen) <= {"METHOD"} | set(METHODS)
    if isinstance(command, cli.Figure | cli.Reproduce):
        assert select(command.name)
    if isinstance(command, cli.Analyse):
        assert command.name in {"all"} | set(ANALYSES)


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
    told = generated.methods()
    assert [name for name in METHODS if f"`{name}`" not in told] == []
    assert len(told.splitlines()) == 2 + len({id(method) for method in METHODS.values()})


def test_methods_are_found_in_the_figures_that_show_them():
    (row,) = [
        line for line in generated.methods().splitlines() if line.startswith("| `transformer`")
    ]
    assert row.endswith("| [13](reproduce.md#transformer) |")
    (row,) = [line for line in generated.methods().splitlines() if line.startswith("| `pearl-gru`")]
    assert row.endswith("| – |")


def test_every_figure_has_a_command_and_its_panels():
    told = generated.figures()
    for figure in FIGURES.values():
        assert f"`splagger figure {figure.name}`" in told
        assert all(f"| {panel.title} |" in told for panel in figure.panels)


def test_every_claim_has_a_verdict():
    told = generated.claims()
    assert [claim.name for claim in CLAIMS if f"| {claim.sentence} |" not in told] == []


def test_a_table_that_nobody_makes_is_an_error():
    with pytest.raises(KeyError, match="nothing"):
        generated.expand("<!-- generated: nothing -->")


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
