"""Methods and layer sizes from their descriptions: the inverse of `splagger.identity.plain`.

Only classes of this package can be rebuilt, by their names in `KINDS`. Nothing is imported.
"""

import dataclasses
import typing
from typing import Any

from splagger import aggregators, policy
from splagger.identity import plain
from splagger.methods import Method
from splagger.network import Network

# The classes of which a description may consist: a method and its parts, and the layer sizes.
KINDS: dict[str, type] = {"Method": Method, "Network": Network}
KINDS |= {
    name: kind
    for module in (aggregators, policy)
    for name, kind in vars(module).items()
    if isinstance(kind, type)
    and issubclass(kind, aggregators.AbstractAggregator | policy.AbstractLatent)
}


def rebuild(description: Any, kind: type) -> Any:
    """Returns the object with this description; raises a ValueError if it is not one of our classes.

    >>> from splagger.methods import METHODS
    >>> rebuild(plain(METHODS["splagger"]), Method) == METHODS["splagger"]
    True
    """
    try:
        found = _value(description, kind)
        exact = isinstance(found, kind) and plain(found) == description
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"it describes no {kind.__name__} ({error})") from None
    if not exact:
        raise ValueError(f"it describes no {kind.__name__} of splagger")
    return found


def _value(given: Any, hint: Any) -> Any:
    """Converts JSON data to the type of a field. Numbers and text are checked by the classes themselves."""
    if isinstance(given, dict):
        kind = KINDS[given["kind"]]
        hints = typing.get_type_hints(kind)
        fields = {f.name: hints[f.name] for f in dataclasses.fields(kind)}
        if isinstance(hint, type) and not issubclass(kind, hint):
            raise TypeError(f"a {kind.__name__} is not a {hint.__name__}")
        return kind(**{k: _value(v, fields[k]) for k, v in given.items() if k != "kind"})
    if isinstance(given, list):
        return hint(*given) if hasattr(hint, "_fields") else tuple(given)
    expected = typing.get_args(hint) or (hint,)
    numbers = (int, float) if float in expected else (int,) if int in expected else ()
    if type(given) not in (*expected, *numbers):
        raise TypeError(f"{str(given)[:60]!r} is not of type {hint}")
    return given
