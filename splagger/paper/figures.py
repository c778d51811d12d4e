"""The paper's figures as rows of data: each panel shows methods on an environment, or an analysis."""

from dataclasses import replace

from splagger.plots.panels import AnalysisPanel, CurvePanel, DimensionsPanel, Entry, Figure, curves
from splagger.plots.styles import DOTTED, STYLES, Style
from splagger.runs.analyses import INITIALIZATION, AnalysisKey
from splagger.stats.evidence import Series
from splagger.tables import lookup

BASELINES = ("splagger", "rnn", "amrl", "cnp", "pearl")
OPERATORS = ("splagger", "rnn", "splagger-avg", "splagger-avgmax")
OPERATORS += ("splagger-softmax", "splagger-wsoftmax")
ANALYZED = ("splagger", "rnn", "amrl", "splagger-nornn")
PREVIEWED = ("splagger", "rnn", "splagger-nornn", "amrl-nornn")
MAX = {"splagger-nornn": "Max", "amrl-nornn": "Max-ST"}

# From strong to zero, dark to light: matplotlib's plasma, which is ordered for color-blind readers too.
KL_WEIGHTS = {
    1.0: Style("KL weight 1", "#0D0887"),
    1e-2: Style("KL weight 10⁻²", "#9C179E"),
    1e-4: Style("KL weight 10⁻⁴", "#D5546E"),
    1e-6: Style("KL weight 10⁻⁶", "#F58C46"),
    0.0: Style("KL weight 0", "#EBD32E"),
}


def _kl(title: str, env: str) -> CurvePanel:
    panel = curves(title, env, ())
    entries = (Entry(Series.create(env, "pearl", kl_weight=w), s) for w, s in KL_WEIGHTS.items())
    return replace(panel, name=f"kl-{env}", entries=tuple(entries))


def _temperatures(title: str, env: str) -> CurvePanel:
    panel, entries = curves(title, env, ()), []
    for method in ("softmax-nornn", "wsoftmax-nornn"):
        for temperature, dash in ((0.1, STYLES[method].dash), (1.0, DOTTED)):
            label = f"{STYLES[method].label}, temperature {temperature:g}"
            style = STYLES[method]._replace(label=label, dash=dash)
            entries.append(Entry(Series.create(env, method, temperature=temperature), style))
    return replace(panel, name=f"temperature-{env}", entries=tuple(entries))


def _gradient(name: str, title: str, label: str, log: bool = False) -> AnalysisPanel:
    return AnalysisPanel(name, title, AnalysisKey(name, INITIALIZATION), ANALYZED, label, log=log)


ROWS = (
    Figure(
        "preview",
        "A preview of the results",
        "Section 4, Figure 2",
        (
            curves("MC-LS", "mc-ls", PREVIEWED, MAX),
            curves("Planning Game", "planning", PREVIEWED, MAX),
        ),
    ),
    Figure(
        "mujoco",
        "MuJoCo benchmarks",
        "Section 5.1, Figure 4",
        (
            curves("Cheetah-Dir", "cheetah-dir", BASELINES),
            curves("Walker", "walker", BASELINES),
        ),
    ),
    Figure(
        "memory",
        "Memory benchmarks",
        "Section 5.2, Figure 5",
        (curves("T-LS", "t-ls", BASELINES), curves("MC-LS", "mc-ls", BASELINES)),
    ),
    Figure(
        "aggregation",
        "Alternative aggregation",
        "Section 5.3, Figure 6",
        (
            curves(
                "Planning Game",
                "planning",
                ("splagger", "rnn", "amrl", "amrl-nornn", "splagger-nornn", "splagger-nosplit"),
            ),
            curves("T-Maze Agreement", "t-agreement", OPERATORS),
            curves(
                "T-Maze Latent",
                "t-latent",
                (*OPERATORS, "splagger-nornn", "cnp"),
                {"cnp": "SplAgger-noRNN-avg (CNP)"},
            ),
        ),
    ),
    Figure(
        "planning-noobs",
        "Planning Game without observations",
        "Section 6.1, Figure 7",
        (curves("Planning Game, no observations", "planning-noobs", ("rnn", "splagger-nornn")),),
    ),
    Figure(
        "gradients",
        "Gradients and permutations at initialization",
        "Section 6.2, Figure 8",
        (
            _gradient(
                "gradient-first",
                "(a) Gradient w.r.t. the first transition",
                r"$\|\partial f_t / \partial \tau_0\|_2$",
            ),
            _gradient(
                "gradient-parameters",
                "(b) Gradient w.r.t. the parameters",
                r"$\|\partial f_t / \partial \theta\|_2$",
            ),
            _gradient(
                "gradient-inputs",
                "(c) Final gradient w.r.t. all transitions",
                r"$\|\partial f_T / \partial \tau_t\|_2$",
                True,
            ),
            _gradient("permutation", "(d) Difference between permutations", "distance"),
        ),
        columns=2,
    ),
    Figure(
        "tuning",
        "Tuning the KL weight and the temperature",
        "Appendix B, Figure 9",
        (
            _kl("T-LS, PEARL", "t-ls"),
            _kl("Walker, PEARL", "walker"),
            _temperatures("T-LS, no RNN", "t-ls"),
        ),
    ),
    Figure(
        "pearl-vari",
        "PEARL trained by reconstruction",
        "Appendix C, Figure 10",
        tuple(
            curves(title, env, ("splagger", "pearl", "pearl-vari"))
            for title, env in (
                ("T-LS", "t-ls"),
                ("Cheetah-Dir", "cheetah-dir"),
                ("Walker", "walker"),
            )
        ),
    ),
    Figure(
        "pearl-variance",
        "Variance of PEARL's latent",
        "Appendix D, Figure 11",
        (
            DimensionsPanel(
                "initialization", "At initialization", AnalysisKey("pearl-variance", INITIALIZATION)
            ),
            DimensionsPanel("trained", "Trained on T-LS", AnalysisKey("pearl-variance", "t-ls")),
        ),
    ),
    Figure(
        "invinit",
        "LSTM initialized to be permutation invariant",
        "Appendix E, Figure 12",
        tuple(
            curves(title, env, ("splagger", "rnn", "lstm-invinit"))
            for title, env in (("Planning Game", "planning"), ("T-Maze Agreement", "t-agreement"))
        ),
    ),
    Figure(
        "transformer",
        "Transformer",
        "Appendix F, Figure 13",
        (curves("T-LS", "t-ls", ("splagger", "transformer")),),
    ),
    Figure(
        "wavg",
        "Weighted average",
        "Appendix G, Figure 14",
        (curves("T-Maze Agreement", "t-agreement", (*OPERATORS, "splagger-wavg")),),
    ),
)

FIGURES: dict[str, Figure] = {row.name: row for row in ROWS}


def select(name: str) -> tuple[Figure, ...]:
    """Returns the figure called `name`, one panel of it (figure/panel), or all figures ("all").

    >>> [figure.name for figure in select("memory/t-ls")]
    ['memory-t-ls']
    """
    panels = {
        f"{row.name}/{panel.name}": replace(row, name=f"{row.name}-{panel.name}", panels=(panel,))
        for row in ROWS
        for panel in row.panels
    }
    return ROWS if name == "all" else (lookup(FIGURES | panels, name, "figure"),)
