"""One self-contained page: claims with verdicts, figures, returns, settings, and how each run was made."""

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from splagger.figures.claims import Claim, judged
from splagger.figures.contestants import contestants
from splagger.figures.curves import curves_of
from splagger.figures.draw import Drawn, picture
from splagger.figures.evidence import FRESH, ONE_RATE, SAME, Evidence
from splagger.figures.export import drawable
from splagger.figures.html import Markup, code, details, join, table, tag
from splagger.figures.origins import runs, settings
from splagger.figures.panels import AnalysisPanel, DimensionsPanel, Figure, Line
from splagger.figures.paper import BASELINES, ROWS
from splagger.figures.returns import across, returns
from splagger.figures.scales import USUAL
from splagger.figures.sheet import CSS
from splagger.figures.stats import Estimate
from splagger.figures.styles import style_of
from splagger.figures.verdicts import FAILS, HOLDS, UNKNOWN, Finding, Verdict

CLASSES = {HOLDS: "holds", FAILS: "fails", UNKNOWN: "open"}
SEEDS = {
    FRESH: "fresh seeds",
    SAME: "seeds, those the rate was chosen on",
    ONE_RATE: "seeds at one rate",
}
CLAIM = ("claim", "section", "verdict", "test", "evidence")
Commands = Mapping[str, Sequence[str]]


def report(evidence: Evidence, commands: Commands) -> str:
    """The page. `commands` tells for each figure how to make what it lacks."""
    results = judged(evidence)
    sections = {
        "Claims": _claims(results),
        "Figures": _figures(evidence, commands),
        "Other environments": _others(evidence),
        "Returns": _returns(evidence),
        "Settings": settings(evidence),
        "Runs": runs(evidence),
    }
    sections = {name: content for name, content in sections.items() if content}
    links = (tag("li", tag("a", name, href=f"#{_place(name)}")) for name in sections)
    body = join(
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("header", tag("h1", "SplAgger, run again"), _summary(evidence, results)),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", *(_section(*item) for item in sections.items()), id="content"),
    )
    return f"<!doctype html>\n{tag('html', _head(), tag('body', body), lang='en')}\n"


def _head() -> Markup:
    """Nothing may be fetched, and nothing may run: the browser is told so too."""
    sheet = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{sheet}'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", "SplAgger, run again: report"),
        tag("style", Markup(CSS)),
    )


def _section(name: str, content: Markup) -> Markup:
    return tag("section", tag("h2", name), content, id=_place(name))


def _place(name: str) -> str:
    return name.lower().replace(" ", "-")


def _summary(evidence: Evidence, results: list[tuple[Claim, Verdict]]) -> Markup:
    counts = Counter(verdict.outcome for _, verdict in results)
    boxes = [
        tag("li", tag("b", str(counts[outcome]), class_=CLASSES[outcome]), outcome)
        for outcome in CLASSES
    ]
    text = (
        f"{len(results)} claims of the paper (Beck et al., 2024), judged on {len(evidence.runs)} recorded "
        f"{'run' if len(evidence.runs) == 1 else 'runs'}:"
    )
    return join(tag("p", text), tag("ul", *boxes, class_="counts"))


def _claims(results: list[tuple[Claim, Verdict]]) -> Markup:
    about = (
        "Each claim says in which region an effect lies. It holds if the whole 95% bootstrap interval lies "
        "there, and does not hold if no part of it does. Rates are chosen by mean return over training; "
        "effects are measured on seeds that took no part in the choice wherever there are enough. "
        "Differences of returns are fractions of the way from guessing to the best known policy."
    )
    decided = [_claim(*pair) for pair in results if pair[1].outcome != UNKNOWN]
    undecided = [_claim(*pair) for pair in results if pair[1].outcome == UNKNOWN]
    more = details(f"Not enough data: {len(undecided)} claims", table(UNKNOWN, CLAIM, undecided))
    return join(tag("p", about), table("Claims with a verdict", CLAIM, decided), more)


def _claim(claim: Claim, verdict: Verdict) -> tuple[str, ...]:
    outcome = tag("span", verdict.outcome, class_=f"verdict {CLASSES[verdict.outcome]}")
    found = tag("ul", *(tag("li", _finding(finding)) for finding in verdict.findings))
    test = f"{claim.test.words()} ({claim.test.unit})"
    return claim.sentence, claim.section, outcome, test, found


def _finding(finding: Finding) -> str:
    effect = f"{_interval(finding.effect, '+.2f')}; " if finding.effect else ""
    return f"{finding.about}: {effect}{finding.note}"


def _interval(found: Estimate, form: str) -> str:
    return f"{found.value:{form}} [{found.low:{form}}, {found.high:{form}}]"


def _figures(evidence: Evidence, commands: Commands) -> Markup:
    about = (
        "Mean over seeds, smoothed over a tenth of training, with the 68% bootstrap interval, as in the paper. "
        "A dashed line is a memory without a recurrent network."
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
    """Curves of what the paper has no figure of: anybody's own environments."""
    runs = [run for run in evidence.runs if run.members and run.name[0] not in USUAL]
    parts = []
    for env in sorted({run.name[0] for run in runs}):
        drawn = [curves_of(contestants([run for run in runs if run.name[0] == env]))]
        shown = _picture(Figure(env, env, "", (drawn[0][0],)), drawn, _origin(drawn))
        parts.append(tag("article", tag("h3", env), shown))
    return join(*parts)


def _noise(drawn, evidence: Evidence) -> str:
    """Of which noise the sequences of an analysis were: the paper and its code differ there."""
    made = evidence.analyses_made()
    fed = [p for p, _ in drawn if isinstance(p, AnalysisPanel)]
    fed = [panel for panel in fed if not isinstance(panel, DimensionsPanel)]  # those lived
    options = [made.get(panel.made, {}).get("options") or {} for panel in fed]
    kinds = dict.fromkeys(bool(option.get("independent")) for option in options)
    words = {False: "one number a step, the same in all dimensions", True: "independent"}
    return "".join(f"; inputs: noise, {words[kind]}" for kind in kinds)


def _ends(lines: Sequence[Line]) -> str:
    ends = (f"{line.style.label} ends at {line.mean[-1]:.3g}" for line in lines if line.named)
    return ", ".join(ends)


def _origin(drawn) -> str:
    """How many seeds a line stands for, where that is not the same for all."""
    lines = [line for _, found in drawn for line in found if line.named]
    kinds = Counter((line.seeds, line.source) for line in lines)
    return "; ".join(
        f"{seeds} {SEEDS.get(source, 'seeds')} ({count} of {len(lines)} lines)"
        for (seeds, source), count in kinds.items()
    )


def _returns(evidence: Evidence) -> Markup:
    rows = [
        (
            f"{row.series.env} · {style_of(row.series.method).label}",
            f"{row.paper.rate:g}",
            f"{row.paper.curves.mean():.2f} ({len(row.paper.curves)} seeds)",
            f"{row.honest.rate:g}",
            f"{len(row.honest.curves)} ({row.honest.source})",
            _interval(row.training, ".2f"),
            _interval(row.end, ".2f"),
            "" if row.chance is None else f"{row.chance:.2f}",
        )
        for row in returns(evidence)
    ]
    head = ("environment and method", "best rate", "mean over training, as in the paper")
    head += ("rate", "seeds", "IQM over training", "IQM at the end", "P(SplAgger more)")
    about = (
        "The paper's number is the mean over training at the best rate, on the seeds that the rate was chosen "
        "on. Beside it, interquartile means (IQM) with 95% stratified bootstrap intervals, and the probability "
        "that a seed of SplAgger earns more. Their seeds are fresh (the rate was chosen on others), held out (the "
        "rate was chosen on the other half), the same (fewer than four, and no fresh ones), or of one rate."
    )
    return join(tag("p", about), table("Returns of a meta-episode", head, rows), _across(evidence))


def _across(evidence: Evidence) -> Markup:
    envs, found = across(evidence, BASELINES)
    if not envs:
        return join()
    rows = [(style_of(m).label, _interval(value, ".2f")) for m, value in found.items()]
    caption = f"Across {', '.join(envs)}: returns over training, 0 = guessing, 1 = best known"
    return table(caption, ("method", "IQM, 95% interval"), rows)
