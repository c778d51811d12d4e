"""HTML from Python: plain strings are escaped, `Markup` is not."""

import base64
import hashlib
import html
from collections.abc import Mapping

from splagger.tables import Table

VOID = {"img", "meta", "link", "source"}


class Markup(str):
    """A string that is already HTML."""


def tag(name: str, /, *children: str, **attributes: str) -> Markup:
    """Returns <name attributes>children</name>; write `class_` for the attribute `class`.

    >>> tag("a", "1 < 2 & more", href="?q='\\"", data_label="x")
    '<a href="?q=&#x27;&quot;" data-label="x">1 &lt; 2 &amp; more</a>'
    """
    head = name
    for key, value in attributes.items():
        head += f' {key.rstrip("_").replace("_", "-")}="{html.escape(value, quote=True)}"'
    return Markup(f"<{head}>" if name in VOID else f"<{head}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """Concatenates the children; plain strings are escaped."""
    parts = (c if isinstance(c, Markup) else html.escape(c, quote=False) for c in children)
    return Markup("".join(parts))


def document(title: str, body: Markup, style: str, script: str = "") -> str:
    """Returns a whole page; its content security policy allows this style and script, and no request."""
    policy = f"default-src 'none'; img-src data:; style-src '{_hash(style)}'"
    policy += f"; script-src '{_hash(script)}'" if script else ""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def table(content: Table, classes: Mapping[str, str] | None = None) -> Markup:
    """Returns a table that scrolls by keyboard and becomes a list of cards on narrow screens.

    `classes` maps cell texts to CSS classes. Columns called "command" and "commit" are shown as code.
    """
    head, classes = content.head, classes or {}
    cells = tag("tr", *(tag("th", text, scope="col") for text in head))
    body = []
    for row in content.rows:
        shown = [_cell(name, text, classes) for name, text in zip(head, row, strict=True)]
        first = tag("th", shown[0], scope="row", data_label=head[0])
        rest = (tag("td", c, data_label=h) for h, c in zip(head[1:], shown[1:], strict=True))
        body.append(tag("tr", first, *rest))
    title = tag("caption", content.title)
    whole = tag("table", title, tag("thead", cells), tag("tbody", *body), class_="cards")
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=content.title)


def _cell(name: str, text: str, classes: Mapping[str, str]) -> str:
    if text in classes:
        return tag("span", text, class_=classes[text])
    if name in ("command", "commit"):
        return code(text)
    if name == "evidence":
        return tag("ul", *(tag("li", line) for line in text.split("\n")))
    return text


def code(text: str) -> Markup:
    return tag("code", text)


def details(summary: str, *children: str) -> Markup:
    return tag("details", tag("summary", summary), *children)
