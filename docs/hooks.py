"""What mkdocs does besides its own work: tables from the code, figures from the results, sources as pages.

Pages link to files of the repository as `../place`. The site has no repository around it, so each such file
becomes a page of its own below `source/`, a folder a list of what is in it, and a picture is copied there.
"""

import re
from pathlib import Path

import generated  # beside this file, where mkdocs looks first
from mkdocs.structure.files import File

OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)\)")
LANGUAGES = {".py": "python", ".json": "json", ".xml": "xml"}
HIDDEN = "---\nsearch:\n  exclude: true\n---\n\n"


def on_files(files, config):
    """Adds a picture for each figure that can be drawn, and a page for each place that is linked to."""
    for name, data in generated.pictures().items():
        files.append(File.generated(config, f"images/figures/{name}.svg", content=data))
    pages = [file for file in files.documentation_pages() if "/" not in file.src_uri]
    linked = {place for file in pages for place in OUTSIDE.findall(_expanded(file))}
    for place in sorted(linked):
        files.append(File.generated(config, _page(place), content=_source(place)))
    return files


def on_page_markdown(markdown, page, **_):
    """The page with its tables, and its links to the repository's files turned to their pages."""
    if page.file.src_uri.startswith("source/"):
        return markdown
    return OUTSIDE.sub(lambda found: f"]({_page(found[1])})", generated.expand(markdown))


def _expanded(file) -> str:
    return generated.expand(file.content_string)


def _page(place: str) -> str:
    return f"source/{place}" if place.endswith(".png") else f"source/{place.rstrip('/')}.md"


def _source(place: str) -> str | bytes:
    """A picture itself; a page that shows the file, or names all files of the folder."""
    path = generated.ROOT / place
    if place.endswith(".png"):
        return path.read_bytes()
    if path.is_dir():
        inside = sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())
        return f"{HIDDEN}# `{place}`\n\n" + "\n".join(f"* `{name}`" for name in inside) + "\n"
    language = LANGUAGES.get(Path(place).suffix, "text")
    return f"{HIDDEN}# `{place}`\n\n````{language}\n{path.read_text()}````\n"
