"""Analyses of memories: gradients, permutations, beliefs, contents, and adaptation within a task."""

import importlib
from typing import TYPE_CHECKING, Any

from splagger.analysis.options import Options as Options

if TYPE_CHECKING:
    from splagger.analysis.api import analyze as analyze
    from splagger.analysis.table import ANALYSES as ANALYSES

# Imported when they are first used: the command line needs the options only, and starts without JAX.
_PLACES = {"analyze": "splagger.analysis.api", "ANALYSES": "splagger.analysis.table"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
