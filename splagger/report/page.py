"""One self-contained page: claims with verdicts, figures, returns, settings, and the provenance of each run."""

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from splagger.paper.claims import evaluate_claims
from splagger.paper.figures import BASELINES, ROWS
from splagger.paper.verdicts import FAILS, HOLDS, UNKNOWN
from splagger.paper_numbers import PAPER
from splagger.plots.curves import curves_of
from splagger.plots.draw import Drawn, picture
from splagger.plots.export import drawable
from splagger.plots.panels import AnalysisPanel, DimensionsPanel, Figure, Line
from splagger.report.html import Markup, code, details, join, table, tag
from splagger.report.style_sheet import CSS
from splagger.report.tables import (
    Results,
    across_table,
    analyses_table,
    claims_table,
    methods_table,
    returns_table,
    runs_table,
    settings_tables,
)
from splagger.stats.evidence import Evidence
from splagger.stats.selection import FRESH, ONE_RATE, SAME
from splagger.stats.variants import variants

CLASSES = {HOLDS: "holds", FAILS: "fails", UNKNOWN: "open"}
VERDICTS = {outcome: f"verdict {name}" for outcome, name in CLASSES.items()}
SEEDS = {
    FRESH: "fresh seeds",
    SAME: "seeds that the rate was chosen on",
    ONE_RATE: "seeds at one rate",
}
Commands = Mapping[str, Sequence[str]]


def report(evidence: Evidence, commands: Commands) -> str:
    """Returns the HTML page. `commands` maps figures to the commands for what they lack."""
    results = evaluate_claims(evidence)
    sections = {
        "Claims": _claims(results),
        "Figures": _figures(evidence, commands),
        "Other environments": _others(evidence),
        "Returns": _returns(evidence),
        "Settings": _settings(evidence),
        "Runs": join(table(runs_table(evidence)), table(analyses_table(evidence))),
    }
    sections = {name: content for name, content in sections.items() if content}
    links = (tag("li", tag("a", name, href=f"#{_anchor(name)}")) for name in sections)
    body = join(
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("header", tag("h1", "SplAgger, reproduced"), _summary(evidence, results)),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", *(_section(*item) for item in sections.items()), id="content"),
    )
    return f"<!doctype html>\n{tag('html', _head(), tag('body', body), lang='en')}\n"


def _head() -> Markup:
    """Returns the head; its content security policy forbids all requests and scripts."""
    sheet = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{sheet}'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", "SplAgger, reproduced: report"),
        tag("style", Markup(CSS)),
    )


def _section(name: str, content: Markup) -> Markup:
    return tag("section", tag("h2", name), content, id=_anchor(name))


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _summary(evidence: Evidence, results: Results) -> Markup:
    counts = Counter(verdict.outcome for _, verdict in results)
    boxes = [
        tag("li", tag("b", str(counts[outcome]), class_=CLASSES[outcome]), outcome)
        for outcome in CLASSES
    ]
    text = (
        f"{len(results)} claims of the paper (Beck et al., 2024), tested on {len(evidence.runs)} recorded "
        f"{'run' if len(evidence.runs) == 1 else 'runs'}:"
    )
    return join(tag("p", text), tag("ul", *boxes, class_="counts"))


def _claims(results: Results) -> Markup:
    about = (
        "Each claim names a region of effects. It holds if the whole 95% bootstrap interval lies in the region, and "
        "does not hold if no part of the interval does. Rates are chosen by mean return over training. Effects are "
        "measured on seeds that the rate was not chosen on if there are enough. Differences between returns are "
        "fractions of the scale from guessing to the best known policy."
    )
    decided = [pair for pair in results if pair[1].outcome != UNKNOWN]
    undecided = [pair for pair in results if pair[1].outcome == UNKNOWN]
    more = table(claims_table(UNKNOWN, undecided), VERDICTS)
    return join(
        tag("p", about),
        table(claims_table("Claims with a verdict", decided), VERDICTS),
        details(f"Not enough data: {len(undecided)} claims", more),
    )


def _settings(evidence: Evidence) -> Markup:
    about = "Learning rates and seeds are listed in the commands of the runs below."
    parts = [details(env, table(found)) for env, found in settings_tables(evidence)]
    return join(tag("p", about), table(methods_table(evidence)), *parts)


def _figures(evidence: Evidence, commands: Commands) -> Markup:
    about = (
        "Lines are means over seeds, smoothed over a tenth of training, with 68% bootstrap intervals, as in the paper. "
        "Methods with dashed lines have no recurrent network."
    )
    return join(tag("p", about), *(_figure(f, evidence, commands.get(f.name, ())) for f in ROWS))


def _figure(figure: Figure, evidence: Evidence, commands: Sequence[str]) -> Markup:
    drawn = drawable(figure, evidence)
    parts = [tag("h3", figure.title), tag("p", figure.where, class_="soft")]
    if drawn:
        parts.append(_picture(figure, drawn, _origin(drawn) + _noise(drawn, evidence)))
    if commands:
        summary = f"{'Not complete' if drawn else 'Not yet run'}: {len(commands)} commands"
        parts.append(details(summary, tag("pre", code("\n".join(commands)))))
    return tag("article", *parts, id=f"figure-{figure.name}")


def _picture(figure: Figure, drawn: Drawn, caption: str) -> Markup:
    data = base64.b64encode(picture(figure, drawn, "svg")).decode()
    words = [f"{p.title}: {_ends(lines)}." for p, lines in drawn]
    image = tag("img", src=f"data:image/svg+xml;base64,{data}", alt=" ".join(words))
    view = tag("div", image, class_="scroll", tabindex="0", role="region", aria_label=figure.title)
    size = "small" if len(drawn) == 1 else "wide"
    return tag("figure", view, tag("figcaption", caption), class_=size)


def _others(evidence: Evidence) -> Markup:
    """Returns learning curves on environments that are not in the paper."""
    runs = [run for run in evidence.runs if run.members and run.record.env not in PAPER]
    parts = []
    for env in sorted({run.record.env for run in runs}):
        drawn = [curves_of(variants([run for run in runs if run.record.env == env]))]
        shown = _picture(Figure(env, env, "", (drawn[0][0],)), drawn, _origin(drawn))
        parts.append(tag("article", tag("h3", env), shown))
    return join(*parts)


def _noise(drawn, evidence: Evidence) -> str:
    """Returns the kind of noise that analyses used, since the paper and its code differ."""
    descriptions = evidence.descriptions()
    panels = [p for p, _ in drawn if isinstance(p, AnalysisPanel)]
    panels = [
        p for p in panels if not isinstance(p, DimensionsPanel)
    ]  # their inputs are transitions
    options = [descriptions.get(panel.analysis, {}).get("options") or {} for panel in panels]
    kinds = dict.fromkeys(bool(option.get("independent")) for option in options)
    words = {False: "one number per step, the same in all dimensions", True: "independent"}
    return "".join(f"; inputs: noise, {words[kind]}" for kind in kinds)


def _ends(lines: Sequence[Line]) -> str:
    ends = (f"{line.style.label} ends at {line.mean[-1]:.3g}" for line in lines if line.named)
    return ", ".join(ends)


def _origin(drawn) -> str:
    """Returns the number and kind of seeds of the lines."""
    lines = [line for _, found in drawn for line in found if line.named]
    kinds = Counter((line.seeds, line.source) for line in lines)
    return "; ".join(
        f"{seeds} {SEEDS.get(source, 'seeds')} ({count} of {len(lines)} lines)"
        for (seeds, source), count in kinds.items()
    )


def _returns(evidence: Evidence) -> Markup:
    about = (
        "The paper reports the mean over training at the best rate, on the seeds that the rate was chosen on. The "
        "other columns are interquartile means (IQM) with 95% stratified bootstrap intervals, and the probability that "
        "a seed of SplAgger earns more. Their seeds are fresh (the rate was chosen on other seeds), held out (the rate "
        "was chosen on the other half), the same (fewer than four, and no fresh ones), or of one rate."
    )
    across = across_table(evidence, BASELINES)
    more = join() if across is None else table(across)
    return join(tag("p", about), table(returns_table(evidence)), more)
