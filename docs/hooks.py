"""What mkdocs does besides its own work: pictures of the claims, and source files as pages.

Pages link to files of the repository as `../path`. The site does not contain the repository, so each linked file becomes
a page below `source/`, a folder becomes a list of its files, and a picture is copied.
"""

import json
import re
from pathlib import Path

from mkdocs.structure.files import File

from docs.paper_tables import pictures
from docs.table_parts import ROOT

OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)\)")
LANGUAGES = {".py": "python", ".json": "json", ".xml": "xml"}
LINK = re.compile(r"\[([^]]+)\]\([^)\s]+\)")
HIDDEN = "---\nsearch:\n  exclude: true\n---\n\n"


def on_files(files, config):
    """Adds the pictures of all claims, and a page for each place that is linked to."""
    for name, data in pictures().items():
        files.append(File.generated(config, f"images/figures/{name}.svg", content=data))
    pages = [file for file in files.documentation_pages() if "/" not in file.src_uri]
    linked = {place for file in pages for place in OUTSIDE.findall(file.content_string)}
    for place in sorted(linked):
        files.append(File.generated(config, _page(place), content=_source(place)))
    return files


def on_page_markdown(markdown, page, **_):
    """Turns links to files of the repository into links to their pages."""
    if "/" in page.file.src_uri:  # below the top, ../ leads to other pages
        return markdown
    return OUTSIDE.sub(lambda found: f"]({_page(found[1])})", markdown)


def _page(place: str) -> str:
    return f"source/{place}" if place.endswith(".png") else f"source/{place.rstrip('/')}.md"


def _source(place: str) -> str | bytes:
    """A picture itself; a page that shows the file, or names all files of the folder."""
    path = ROOT / place
    if place.endswith(".png"):
        return path.read_bytes()
    if path.is_dir():
        inside = sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())
        return f"{HIDDEN}# `{place}`\n\n" + "\n".join(f"* `{name}`" for name in inside) + "\n"
    if path.suffix == ".ipynb":
        return HIDDEN + "\n\n".join(map(_cell, json.loads(path.read_text())["cells"])) + "\n"
    language = LANGUAGES.get(Path(place).suffix, "text")
    return f"{HIDDEN}# `{place}`\n\n````{language}\n{path.read_text()}````\n"


def _cell(cell: dict) -> str:
    """A cell of a notebook as Markdown, without its output; links are those of another folder, hence only their text."""
    text = "".join(cell["source"])
    is_code = cell["cell_type"] == "code"
    return f"````python\n{text}\n````" if is_code else LINK.sub(r"\1", text)
