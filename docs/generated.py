"""The tables of the site that are made from the code and the recorded results, so that none is ever stale.

A page asks for one by a line `<!-- generated: NAME -->`; `docs/hooks.py` puts it there.
"""

import functools as ft
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from splagger.methods import ALIASES, METHODS, Method
from splagger.paper.claims import evaluate_claims
from splagger.paper.figures import FIGURES
from splagger.paper.reproduce import commands
from splagger.paper.verdicts import FAILS, HOLDS, UNKNOWN, Finding
from splagger.plots.draw import picture
from splagger.plots.export import drawable
from splagger.plots.panels import AnalysisPanel, Figure, Panel
from splagger.plots.styles import style_of
from splagger.stats.estimates import Estimate
from splagger.stats.evidence import Evidence
from splagger.stats.returns import returns

ROOT = Path(__file__).parents[1]
PLACE = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)


@ft.cache
def evidence() -> Evidence:
    """All that is committed under results/."""
    return Evidence.read(ROOT / "results", analyses=ROOT / "results" / "analysis")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(("a", "b"), [("1", "x|y")]))
    | a | b |
    |---|---|
    | 1 | x\\|y |
    """
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in r] for r in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines).replace(" --- ", "---")


def methods() -> str:
    """Every method, what it is made of, and the figures of the paper that show it."""
    other = {name: alias for alias, name in ALIASES.items()}
    rows = (
        (
            f"`{name}`" + (f", `{other[name]}`" if name in other else ""),
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
    head = ("name", "in figures", "encoder", "aggregator", "neurons that skip it", "latent")
    return table((*head, "figures of the paper"), rows)


def _aggregator(method: Method) -> str:
    """The class, with those inside it.

    >>> _aggregator(METHODS["splagger-avgmax"]), _aggregator(METHODS["rnn"])
    ('Halves(Mean, Max)', 'none')
    """
    if method.skip == 1:
        return "none"
    inside = [type(part).__name__ for part in vars(method.aggregator).values() if _nested(part)]
    return type(method.aggregator).__name__ + (f"({', '.join(inside)})" if inside else "")


def _nested(part: object) -> bool:
    return hasattr(part, "combine")


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


def figures() -> str:
    """Every figure of the paper: its panels, what is recorded of them, and the commands that make it."""
    return "\n\n".join(_figure(figure) for figure in FIGURES.values())


def _figure(figure: Figure) -> str:
    rows = ((p.title, _names(p), _recorded(p)) for p in figure.panels)
    parts = [
        f"### {figure.title} {{ #{figure.name} }}",
        f"{figure.where}. `splagger figure {figure.name}`",
    ]
    if drawable(figure, evidence()):
        parts.append(f"![{figure.title}](images/figures/{figure.name}.svg)")
    parts.append(table(("panel", "lines", "recorded"), rows))
    told = commands(figure.missing(Evidence([])), Evidence([]), "results", "results/analysis")
    block = "\n".join(f"    {line}" for line in ["```", *told, "```"])
    return "\n\n".join([*parts, f'??? note "From nothing: {len(told)} commands"\n\n{block}'])


def _names(panel: Panel) -> str:
    if isinstance(panel, AnalysisPanel):
        return ", ".join(style_of(method).label for method in panel.methods)
    return ", ".join(entry.style.label for entry in panel.entries)


def _recorded(panel: Panel) -> str:
    """How many lines there are data for, and where these are."""
    if isinstance(panel, AnalysisPanel):
        place = f"results/analysis/{panel.made.name}/{panel.made.when}"
        found = [m for m in panel.methods if evidence().analysis(*panel.made, m)]
        return _place(len(found), len(panel.methods), place)
    found = [entry for entry in panel.entries if evidence().members(entry.series)]
    return _place(len(found), len(panel.entries), f"results/{panel.entries[0].series.env}")


def _place(found: int, wanted: int, place: str) -> str:
    return f"{found} of {wanted}, [`{place}`](../{place})" if found else f"0 of {wanted}"


def pictures() -> dict[str, bytes]:
    """Name → SVG of every figure that there is anything to draw of."""
    drawn = {name: drawable(figure, evidence()) for name, figure in FIGURES.items()}
    return {name: picture(FIGURES[name], lines, "svg") for name, lines in drawn.items() if lines}


def results() -> str:
    """Returns of every method on every environment that was run with its own settings."""
    rows = (
        (
            f"`{row.series.env}`",
            style_of(row.series.method).label,
            f"{row.paper.rate:g}",
            f"{row.paper.curves.mean():.2f} ({len(row.paper.curves)})",
            f"{len(row.unbiased.curves)} {row.unbiased.source}",
            _interval(row.training, ".2f"),
            _interval(row.end, ".2f"),
        )
        for row in returns(evidence())
    )
    head = ("environment", "method", "best rate", "mean over training (seeds)", "seeds of the rest")
    return table((*head, "IQM over training", "IQM at the end"), rows)


def claims() -> str:
    """Every claim with its verdict: those that the data decide, then the others."""
    decided, open_ = [], []
    for claim, verdict in evaluate_claims(evidence()):
        found = "<br>".join(_finding(finding) for finding in verdict.findings)
        row = (claim.sentence, claim.section, f"**{verdict.outcome}**", claim.test.words(), found)
        (open_ if verdict.outcome == UNKNOWN else decided).append(row)
    outcomes = [row[2].strip("*") for row in decided]
    told = f"{len(decided) + len(open_)} claims: {outcomes.count(HOLDS)} hold, "
    told += f"{outcomes.count(FAILS)} not, {len(open_)} lack data."
    head = ("claim", "section", "verdict", "test", "evidence")
    return "\n\n".join(
        [told, "### Decided", table(head, decided), "### Not enough data", table(head, open_)]
    )


def _finding(finding: Finding) -> str:
    effect = f"{_interval(finding.effect, '+.2f')}; " if finding.effect else ""
    return f"{finding.about}: {effect}{finding.note}"


def _interval(found: Estimate, form: str) -> str:
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


TABLES = {"methods": methods, "figures": figures, "results": results, "claims": claims}


def expand(text: str) -> str:
    """A page with its tables in place; a table that nobody makes is an error."""
    return PLACE.sub(lambda found: _made(found[1]), text)


@ft.cache
def _made(name: str) -> str:
    return TABLES[name]()
