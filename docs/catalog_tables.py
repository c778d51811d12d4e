"""The tables of packages, environments and methods, made from the code."""

import ast
from pathlib import Path
from typing import Any

from docs.table_parts import ROOT, markdown, measured
from splagger.gymnasium_ids import IDS
from splagger.methods import ALIASES, METHODS, Method
from splagger.paper.figures import FIGURES
from splagger.paper_numbers import PROTOCOLS
from splagger.plots.panels import AnalysisPanel, Panel
from splagger.plots.styles import style_of
from splagger.registry import ENVS
from splagger.spaces import Discrete
from splagger.zoo import cards
from splagger.zoo.listing import zoo_table


def rooms() -> str:
    """Every package and module, and what it is for."""
    package = ROOT / "splagger"
    paths = [p for p in package.iterdir() if p.suffix == ".py" and p.stem != "__main__"]
    paths += package.rglob("*/__init__.py")
    return markdown(("package or module", "what it is for"), map(_room, sorted(paths)))


def _room(path: Path) -> tuple[str, str]:
    is_package = path.name == "__init__.py" and path.parent.name != "splagger"
    place = path.parent if is_package else path
    name = str(place.relative_to(ROOT)) + ("/" if is_package else "")
    summary = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]
    return f"`{name}`", " ".join(summary.split())


def environments() -> str:
    """The paper's environments with their sizes."""
    ids = {name: identifier for identifier, name in IDS.items()}
    head = ("name", "Gymnasium id", "episodes per task", "steps per episode", "observation")
    return markdown(
        (*head, "actions", "best known return"),
        (
            (
                f"`{name}`",
                f"`{ids[name]}`",
                f"{row.episodes}",
                f"{'' if row.env.spec.fixed_length else '≤ '}{row.env.spec.horizon}",
                f"{row.env.spec.obs_size}" + (" + done flag" if row.episodes > 1 else ""),
                _actions(row.env.spec.space),
                "unknown" if row.best_return is None else f"{row.best_return:g}",
            )
            for name, row in ENVS.items()
            if not row.small and not row.classic
        ),
    )


def classic_environments() -> str:
    """The tasks that are not in the paper, with the returns of scripted policies."""
    ids = {name: identifier for identifier, name in IDS.items()}
    returns: dict[str, dict[str, float]] = {}
    for found in measured("references")["rows"]:
        returns.setdefault(found["env"], {})[found["policy"]] = found["mean"]
    rows = []
    for name, policies in returns.items():
        row, protocol = ENVS[name], PROTOCOLS[name]
        _, reference, *others = policies
        rows.append(
            (
                f"`{name}`",
                f"`{ids[name]}`",
                f"{row.episodes}",
                f"{'' if row.env.spec.fixed_length else '≤ '}{row.env.spec.horizon}",
                _actions(row.env.spec.space),
                f"{protocol.scale.guess:g}",
                f"{protocol.scale.best:g} ({reference})",
                ", ".join(f"{policies[other]:.1f} ({other})" for other in others) or "–",
            )
        )
    head = ("name", "Gymnasium id", "episodes per task", "steps per episode", "actions")
    return markdown((*head, "random", "reference", "other policies"), rows)


def _actions(space: Any) -> str:
    return f"{space.size}" if isinstance(space, Discrete) else f"{space.size} real numbers"


def methods() -> str:
    """Every method, what it is made of, and the figures of the paper that show it."""
    aliases = {name: alias for alias, name in ALIASES.items()}
    rows = (
        (
            f"`{name}`" + (f", `{aliases[name]}`" if name in aliases else ""),
            style_of(name).label,
            f"{method.encoder}, {method.width}",
            _aggregator(method),
            f"{method.skip:.0%}",
            type(method.latent).__name__.lower(),
            ", ".join(_shown_in(name)) or "–",
        )
        for name, method in METHODS.items()
        if name not in ALIASES
    )
    head = ("name", "in figures", "encoder, width", "aggregator", "neurons that skip it", "latent")
    return markdown((*head, "figures of the paper"), rows)


def _aggregator(method: Method) -> str:
    """The class of the aggregator, with those inside it.

    >>> _aggregator(METHODS["splagger-avgmax"]), _aggregator(METHODS["rnn"])
    ('Halves(Mean, Max)', 'none')
    """
    if method.skip == 1:
        return "none"
    parts = vars(method.aggregator).values()
    inside = [type(part).__name__ for part in parts if hasattr(part, "combine")]
    return type(method.aggregator).__name__ + (f"({', '.join(inside)})" if inside else "")


def _shown_in(method: str) -> list[str]:
    return [
        f"[{figure.where.split()[-1]}](reproduce.md#{figure.name})"
        for figure in FIGURES.values()
        if any(method in _methods(panel) for panel in figure.panels)
    ]


def _methods(panel: Panel) -> list[str]:
    if isinstance(panel, AnalysisPanel):
        return list(panel.methods)
    return list(dict.fromkeys(entry.series.method for entry in panel.entries))


def zoo() -> str:
    """The agents inside the package, with their returns and costs."""
    return zoo_table().markdown()


def zoo_rounding() -> str:
    """The agent whose return changes most when its parameters are rounded to half precision."""
    card = max(cards().values(), key=lambda c: abs(c.mean - c.unrounded) / max(c.margin, 1e-3))
    row = card.name, f"{card.unrounded:.3f}", f"{card.mean:.3f}", f"± {card.margin:.3f}"
    head = ("agent", "return in float32", "return in float16", "95% interval over tasks")
    return markdown(head, [row])
