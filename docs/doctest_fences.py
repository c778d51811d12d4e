"""A Griffe extension for the API pages: doctests in docstrings become fenced code blocks."""

import re

import griffe

DOCTEST = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


class DoctestFences(griffe.Extension):
    """Puts every block that begins with ">>>" into a fence."""

    def on_instance(self, *, obj, **_):
        if obj.docstring:
            fenced = DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
            obj.docstring.value = fenced
