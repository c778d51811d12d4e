"""The tables and pictures of docs/reproduce.md and docs/claims.md, made from the recorded results."""

import functools as ft

from docs.table_parts import evidence, markdown, verdicts
from splagger.paper.figures import FIGURES
from splagger.paper.forest import claims_picture
from splagger.paper.reproduce import commands
from splagger.paper.verdicts import FAILS, FAILS_SO_FAR, HOLDS, HOLDS_SO_FAR, OUTCOMES, UNDECIDED
from splagger.paper_numbers import PAPER, SCALES
from splagger.plots.export import drawable
from splagger.plots.forest import NARROW, WIDE
from splagger.plots.panels import AnalysisPanel, Figure, Panel
from splagger.plots.styles import style_of
from splagger.report.tables import claims_table, millions, returns_table
from splagger.stats.estimates import interquartile_mean, over_training
from splagger.stats.evidence import Evidence, Series
from splagger.tables import count


@ft.cache
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
        parts.append(f"![{figure.title}](../results/figures/{figure.name}.png)")
    parts.append(markdown(("panel", "lines", "recorded"), rows))
    lines = commands(figure.missing(Evidence([])), Evidence([]), "results", "results/analysis")
    block = "\n".join(f"    {line}" for line in ["```", *lines, "```"])
    return "\n\n".join(
        [*parts, f'??? note "From nothing: {count(len(lines), "command")}"\n\n{block}']
    )


def _names(panel: Panel) -> str:
    if isinstance(panel, AnalysisPanel):
        return ", ".join(style_of(method).label for method in panel.methods)
    return ", ".join(entry.style.label for entry in panel.entries)


def _recorded(panel: Panel) -> str:
    """For how many lines there are data, where these are, and how long the runs are if they are shorter than the paper's."""
    if isinstance(panel, AnalysisPanel):
        folder = f"results/analysis/{panel.analysis.folder}"
        found = [m for m in panel.methods if evidence().analysis(panel.analysis, m)]
        return _link(len(found), len(panel.methods), folder)
    found = [entry for entry in panel.entries if evidence().members(entry.series)]
    short = [entry.series for entry in found if evidence().lacks(entry.series)]
    link = _link(len(found), len(panel.entries), f"results/{panel.entries[0].series.env}")
    return f"{link}, at {millions(evidence(), short[0])} million frames" if short else link


def _link(found: int, wanted: int, folder: str) -> str:
    return f"{found} of {wanted}, [`{folder}`](../{folder})" if found else f"0 of {wanted}"


def pictures() -> dict[str, bytes]:
    """Name → SVG of all claims, for wide and for narrow screens."""
    claims = {"claims": WIDE, "claims-narrow": NARROW}
    return {name: claims_picture(verdicts(), "svg", on) for name, on in claims.items()}


def returns() -> str:
    """Returns of every method on every environment of the paper that was run with its default settings."""
    runs = [run for run in evidence().runs if run.record.env in PAPER]
    return returns_table(Evidence(runs)).markdown()


IN_SHORT = ("splagger", "rnn", "amrl", "cnp", "pearl")
TASKS = ("t-ls", "t-agreement", "t-latent", "mc-ls", "planning")


def returns_in_short() -> str:
    """The return over training of the paper's main methods, where the paper runs them, and the best known returns."""
    rows = [
        (style_of(method).label, *(_over_training(Series(env, method)) for env in TASKS))
        for method in IN_SHORT
    ]
    return markdown(("", *(f"{env} ({SCALES[env].best:g})" for env in TASKS)), rows)


def _over_training(series: Series) -> str:
    if (chosen := evidence().unbiased(series)) is None:
        return "–"
    return f"{interquartile_mean(over_training(chosen.curves)).item():.2f}"


def claim_counts() -> str:
    """How many claims hold, in one table."""
    outcomes = [verdict.outcome for _, verdict in verdicts()]
    found = [outcome for outcome in OUTCOMES if outcome in outcomes]
    rows = [(outcome, f"{outcomes.count(outcome)}") for outcome in found]
    return markdown(("verdict", f"of {len(outcomes)} claims"), rows)


def claims_in_one_sentence() -> str:
    """How many claims hold, as a sentence."""
    outcomes = [verdict.outcome for _, verdict in verdicts()]
    holds, fails, unknown = (outcomes.count(one) for one in (HOLDS, FAILS, UNDECIDED))
    holds_so_far, fails_so_far = (outcomes.count(one) for one in (HOLDS_SO_FAR, FAILS_SO_FAR))
    return (
        f"`splagger report` tests each of the paper's {len(outcomes)} empirical claims: {holds} hold here and "
        f"{fails} do not; in runs shorter than the paper's, {holds_so_far} hold so far and {fails_so_far} "
        f"{'does' if fails_so_far == 1 else 'do'} not; {unknown} are not decided."
    )


def claims_that_fail() -> str:
    """The claims that do not hold here."""
    failed = [(c, v) for c, v in verdicts() if v.outcome in (FAILS, FAILS_SO_FAR)]
    rows = [(c.sentence, c.section, v.outcome) for c, v in failed]
    return markdown(("claim that does not hold", "section", "verdict"), rows)


def claims_decided() -> str:
    """Every claim that the data decide."""
    return claims_table("", [r for r in verdicts() if r[1].outcome != UNDECIDED]).markdown()


def claims_undecided() -> str:
    """Every claim that the data do not decide."""
    return claims_table("", [r for r in verdicts() if r[1].outcome == UNDECIDED]).markdown()
