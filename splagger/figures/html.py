"""HTML from Python: every text is escaped, only what `tag` made is markup."""

import html

VOID = {"img", "meta", "link"}


class Markup(str):
    """A text that is HTML already; only `tag` makes it."""


def tag(name: str, /, *children: str, **attributes: str) -> Markup:
    """<name attributes>children</name>; a trailing underscore keeps Python's words apart: class_.

    >>> tag("a", "1 < 2 & more", href="?q='\\"", data_label="x")
    '<a href="?q=&#x27;&quot;" data-label="x">1 &lt; 2 &amp; more</a>'
    """
    head = name
    for key, value in attributes.items():
        head += f' {key.rstrip("_").replace("_", "-")}="{html.escape(value, quote=True)}"'
    return Markup(f"<{head}>" if name in VOID else f"<{head}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """The children one after another, escaped where they are plain text."""
    parts = (c if isinstance(c, Markup) else html.escape(c, quote=False) for c in children)
    return Markup("".join(parts))


def table(caption: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Markup:
    """A table that scrolls by keyboard and, on a narrow screen, is a list of cards that name their cells."""
    cells = tag("tr", *(tag("th", text, scope="col") for text in head))
    body = []
    for row in rows:
        first = tag("th", row[0], scope="row", data_label=head[0])
        rest = (tag("td", c, data_label=h) for h, c in zip(head[1:], row[1:], strict=True))
        body.append(tag("tr", first, *rest))
    whole = tag(
        "table", tag("caption", caption), tag("thead", cells), tag("tbody", *body), class_="cards"
    )
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def code(text: str) -> Markup:
    return tag("code", text)


def details(summary: str, *children: str) -> Markup:
    return tag("details", tag("summary", summary), *children)
