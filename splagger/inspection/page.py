"""The page of `splagger inspect`: one HTML file with its data, style and script, which requests nothing."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from splagger.inspection.counterfactuals import Outcome
from splagger.inspection.pictures import Pictures
from splagger.inspection.trace import Trace
from splagger.report.html import Markup, document, tag

HERE = Path(__file__).parent


def page(title: str, about: str, agents: Sequence[dict[str, Any]], pictures: Pictures) -> str:
    """Returns the HTML page of agents described by `agent_data`."""
    data = {"title": title, "about": about, "agents": agents, "pictures": _sheets(pictures)}
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    script = _asset("page.js")
    body = tag(
        "body",
        tag("main", id="page"),
        tag("script", Markup(text), type="application/json", id="data"),
        tag("script", Markup(script)),
    )
    return document(title, body, _asset("page.css"), script)


def agent_data(
    label: str,
    color: str,
    trace: Trace,
    actions: Sequence[str],
    tiles: np.ndarray,
    outcomes: Sequence[Outcome] = (),
    sizes: Sequence[int] = (),
) -> dict[str, Any]:
    """Returns everything that the page shows of one agent, as JSON.

    Numbers of the decision are float32; heat maps are rounded to 255 levels. `actions` are the names of actions, of
    dimensions, or of the numbers of which an action consists. In the last case, number i has `sizes[i]` values.
    """
    exact = {
        "probabilities": trace.probabilities,
        "spread": trace.spread,
        "action": trace.action,
        "value": trace.value,
        "reward": trace.reward,
    }
    maps = {"neurons": trace.neurons, "output": trace.output, "variance": trace.variance}
    arrays = {name: _exact(array) for name, array in exact.items() if array is not None}
    arrays |= {name: _rounded(array) for name, array in maps.items() if array is not None}
    if trace.set_by is not None:
        arrays["setBy"] = _integers(trace.set_by, "<i2", "<i4")
    return {
        "label": label,
        "color": color,
        "actions": list(actions),
        "sizes": list(sizes),
        "skip": trace.skip,
        "episodeEnds": np.flatnonzero(trace.episode_end).tolist(),
        "signals": np.flatnonzero(trace.signal).tolist(),
        "arrays": arrays,
        "tiles": _integers(tiles, "<u2", "<u4"),
        "outcomes": [_outcome(outcome) for outcome in outcomes],
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "name": outcome.name,
        "about": outcome.about,
        "return": float(outcome.returns[-1]),
        "changed": outcome.changed,
        "returns": _exact(outcome.returns),
        "distance": _rounded(outcome.distance[:, None]),
    }


def _sheets(pictures: Pictures) -> dict[str, Any]:
    fields = pictures._asdict()
    del fields["frames"]
    return fields


def _encoded(array: np.ndarray, scale: float = 1.0) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    kind = array.dtype.str[1:]
    return {"type": kind, "shape": list(array.shape), "scale": scale, "data": data}


def _integers(array: np.ndarray, short: str, long: str) -> dict[str, Any]:
    """Encodes integers in the short type if it holds all of them."""
    fits = array.max(initial=0) <= np.iinfo(short).max
    return _encoded(array.astype(short if fits else long))


def _exact(array: np.ndarray) -> dict[str, Any]:
    return _encoded(array.astype("<f4"))


def _rounded(array: np.ndarray) -> dict[str, Any]:
    """Rounds to multiples of the largest absolute value / 127."""
    scale = float(np.abs(array).max(initial=0.0)) / 127 or 1.0
    return _encoded(np.rint(array / scale).astype("i1"), scale)


def _asset(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
