"""One self-contained page: claims with verdicts, figures, returns, settings, and the provenance of each run."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence

from splagger.paper.claims import evaluate_claims
from splagger.paper.figures import BASELINES, ROWS
from splagger.paper.forest import claims_picture, forest_panels
from splagger.paper.verdicts import FAILS, FAILS_SO_FAR, HOLDS, HOLDS_SO_FAR, UNDECIDED
from splagger.paper_numbers import PAPER
from splagger.plots.curves import curves_of, with_distinct_colors
from splagger.plots.draw import Drawn, picture
from splagger.plots.export import drawable
from splagger.plots.forest import NARROW
from splagger.plots.panels import AnalysisPanel, DimensionsPanel, Figure, Line
from splagger.report.html import Markup, code, details, document, join, table, tag
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
from splagger.stats.effort import effort
from splagger.stats.evidence import Evidence
from splagger.stats.selection import FRESH, ONE_RATE, SAME
from splagger.stats.variants import variants
from splagger.tables import count

CLASSES = {
    HOLDS: "holds",
    HOLDS_SO_FAR: "holds",
    FAILS: "fails",
    FAILS_SO_FAR: "fails",
    UNDECIDED: "open",
}
PLURALS = {
    HOLDS: "hold",
    HOLDS_SO_FAR: "hold so far, in shorter runs than the paper's",
    FAILS: "do not hold",
    FAILS_SO_FAR: "do not hold so far, in shorter runs than the paper's",
    UNDECIDED: "are not decided",
}
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
        "Runs": _runs(evidence),
    }
    sections = {name: content for name, content in sections.items() if content}
    links = (tag("li", tag("a", name, href=f"#{_anchor(name)}")) for name in sections)
    body = join(
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("header", tag("h1", "SplAgger, reproduced"), _summary(evidence, results)),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", *(_section(*item) for item in sections.items()), id="content"),
    )
    return document("SplAgger, reproduced: report", tag("body", body), CSS)


def _section(name: str, content: Markup) -> Markup:
    return tag("section", tag("h2", name), content, id=_anchor(name))


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _summary(evidence: Evidence, results: Results) -> Markup:
    counts = Counter(verdict.outcome for _, verdict in results)
    boxes = [
        tag("li", tag("b", str(counts[outcome]), class_=name), PLURALS[outcome])
        for outcome, name in CLASSES.items()
        if counts[outcome] or outcome not in (HOLDS_SO_FAR, FAILS_SO_FAR)
    ]
    cost = effort(evidence.runs).words()
    text = f"{len(results)} claims of the paper (Beck et al., 2024), tested on recorded runs:"
    return join(tag("p", text), tag("ul", *boxes, class_="counts"), tag("p", cost, class_="soft"))


def _claims(results: Results) -> Markup:
    about = (
        "Each claim names a region of effects. It holds if the whole 95% bootstrap interval lies in the region, and "
        "does not hold if no part of the interval does. “So far” marks runs that are shorter than the paper's. "
        "Rates are chosen by mean return over training. Effects are measured on seeds that the rate was not chosen "
        "on if there are enough. Differences between returns are fractions of the scale from guessing to the best "
        "known policy."
    )
    decided = [pair for pair in results if pair[1].outcome != UNDECIDED]
    undecided = [pair for pair in results if pair[1].outcome == UNDECIDED]
    more = table(claims_table(UNDECIDED, undecided), VERDICTS)
    return join(
        tag("p", about),
        _forest(results),
        details(
            f"{count(len(decided), 'claim')} with a verdict, its test and its evidence",
            table(claims_table("Claims with a verdict", decided), VERDICTS),
        ),
        details(f"{count(len(undecided), 'claim')} without a verdict", more),
    )


def _forest(results: Results) -> Markup:
    """Returns the forest plot of all claims with data; nothing if there are none."""
    if not forest_panels(results):
        return join()
    words = (f"{verdict.outcome}: {claim.sentence}" for claim, verdict in results)
    caption = "Effects with 95% intervals. A claim holds if all its intervals lie in its region."
    narrow = tag(
        "source",
        media="(max-width: 48rem)",
        srcset=_data(claims_picture(results, "svg", NARROW)),
    )
    image = tag("img", src=_data(claims_picture(results, "svg")), alt=" ".join(words))
    return _view(tag("picture", narrow, image), "All claims", caption, "tall")


def _settings(evidence: Evidence) -> Markup:
    about = "Learning rates and seeds are listed in the commands of the runs below."
    parts = [details(env, table(found)) for env, found in settings_tables(evidence)]
    methods = methods_table(evidence)
    return join(tag("p", about), details(methods.title, table(methods)), *parts)


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
        state = "Not complete" if drawn else "Not yet run"
        summary = f"{state}: {count(len(commands), 'command')}"
        parts.append(details(summary, tag("pre", code("\n".join(commands)))))
    return tag("article", *parts, id=f"figure-{figure.name}")


def _picture(figure: Figure, drawn: Drawn, caption: str) -> Markup:
    words = " ".join(f"{p.title}: {_ends(lines)}." for p, lines in drawn)
    size = "small" if len(drawn) == 1 else "wide"
    image = tag("img", src=_data(picture(figure, drawn, "svg")), alt=words)
    return _view(image, figure.title, caption, size)


def _data(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def _view(image: Markup, title: str, caption: str, size: str) -> Markup:
    """Returns a picture with its caption; `size` is small, wide or tall."""
    view = tag("div", image, class_="scroll", tabindex="0", role="region", aria_label=title)
    return tag("figure", view, tag("figcaption", caption), class_=size)


def _others(evidence: Evidence) -> Markup:
    """Returns learning curves on environments that are not in the paper."""
    runs = [run for run in evidence.runs if run.members and run.record.env not in PAPER]
    parts = []
    for env in sorted({run.record.env for run in runs}):
        panel = curves_of(variants([run for run in runs if run.record.env == env]))
        drawn = with_distinct_colors([panel])
        shown = _picture(Figure(env, env, "", (drawn[0][0],)), drawn, _origin(drawn))
        parts.append(tag("article", tag("h3", env), shown))
    return join(*parts)


def _noise(drawn, evidence: Evidence) -> str:
    """Returns the kind of noise that analyses used, since the paper and its code differ."""
    descriptions = evidence.descriptions()
    panels = [p for p, _ in drawn if isinstance(p, AnalysisPanel)]
    # The inputs of the others are transitions.
    panels = [p for p in panels if not isinstance(p, DimensionsPanel)]
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
        f"{seeds} {SEEDS.get(source, 'seeds')} ({number} of {len(lines)} lines)"
        for (seeds, source), number in kinds.items()
    )


def _returns(evidence: Evidence) -> Markup:
    about = (
        "The paper reports the mean over training at the best rate, on the seeds that the rate was chosen on. The "
        "other columns are interquartile means (IQM) with 95% stratified bootstrap intervals, and the probability that "
        "a seed of SplAgger earns more. Their seeds are fresh (the rate was chosen on other seeds), held out (the rate "
        "was chosen on the other half), the same (fewer than four, and no fresh ones), or of one rate."
    )
    across = across_table(evidence, BASELINES)
    first = join() if across is None else table(across)
    found = returns_table(evidence)
    more = details(f"{found.title}, by environment and method", table(found))
    return join(tag("p", about), first, more)


def _runs(evidence: Evidence) -> Markup:
    """Returns the origin of each run and analysis."""
    found = (runs_table(evidence), analyses_table(evidence))
    parts = (details(f"{one.title} ({len(one.rows)})", table(one)) for one in found)
    about = "Command, commit, device, time and state of everything above."
    return join(tag("p", about), *parts)
