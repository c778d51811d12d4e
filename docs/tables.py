"""The tables of the README and the docs, made from the code and the recorded results: `make tables`.

A page holds each table between `<!-- table: NAME -->` and `<!-- end -->`. `python -m docs.tables` writes the present
content there, and a test fails while any page is out of date.
"""

import ast
import functools as ft
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from docs.reliability_tables import saving, storm
from docs.table_parts import markdown, measured
from splagger.gymnasium_ids import IDS
from splagger.methods import ALIASES, METHODS, Method
from splagger.paper.claims import evaluate_claims
from splagger.paper.figures import FIGURES
from splagger.paper.reproduce import commands
from splagger.paper.verdicts import FAILS, HOLDS, UNKNOWN
from splagger.paper_numbers import PROTOCOLS
from splagger.plots.draw import picture
from splagger.plots.export import drawable
from splagger.plots.panels import AnalysisPanel, Figure, Panel
from splagger.plots.styles import style_of
from splagger.registry import ENVS
from splagger.report.tables import claims_table, returns_table
from splagger.runs.analyses import AnalysisKey
from splagger.runs.folder import find_runs
from splagger.spaces import Discrete
from splagger.stats.evidence import Evidence, RecordedRun
from splagger.stats.members import best_rate
from splagger.tables import lookup

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(r"<!-- table: ([\w-]+) -->\n(?:.*?\n)??<!-- end -->", re.DOTALL)
EXPLORES = 17.85  # the return of the policy that explores again after every goal


@ft.cache
def evidence() -> Evidence:
    """Everything that is committed under results/."""
    return Evidence.read(ROOT / "results", analyses=ROOT / "results" / "analysis")


@ft.cache
def verdicts() -> list:
    return evaluate_claims(evidence())


# --- what there is


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
                f"{protocol.random:g}",
                f"{protocol.reference:g} ({reference})",
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


# --- the paper


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
    parts.append(markdown(("panel", "lines", "recorded"), rows))
    lines = commands(figure.missing(Evidence([])), Evidence([]), "results", "results/analysis")
    block = "\n".join(f"    {line}" for line in ["```", *lines, "```"])
    return "\n\n".join([*parts, f'??? note "From nothing: {len(lines)} commands"\n\n{block}'])


def _names(panel: Panel) -> str:
    if isinstance(panel, AnalysisPanel):
        return ", ".join(style_of(method).label for method in panel.methods)
    return ", ".join(entry.style.label for entry in panel.entries)


def _recorded(panel: Panel) -> str:
    """For how many lines there are data, and where these are."""
    if isinstance(panel, AnalysisPanel):
        folder = f"results/analysis/{panel.analysis.folder}"
        found = [m for m in panel.methods if evidence().analysis(panel.analysis, m)]
        return _link(len(found), len(panel.methods), folder)
    found = [entry for entry in panel.entries if evidence().members(entry.series)]
    return _link(len(found), len(panel.entries), f"results/{panel.entries[0].series.env}")


def _link(found: int, wanted: int, folder: str) -> str:
    return f"{found} of {wanted}, [`{folder}`](../{folder})" if found else f"0 of {wanted}"


def pictures() -> dict[str, bytes]:
    """Name → SVG of every figure for which there are data."""
    drawn = {name: drawable(figure, evidence()) for name, figure in FIGURES.items()}
    return {name: picture(FIGURES[name], lines, "svg") for name, lines in drawn.items() if lines}


def returns() -> str:
    """Returns of every method on every environment that was run with its default settings."""
    return returns_table(evidence()).markdown()


def claim_counts() -> str:
    """How many claims hold, in one table."""
    outcomes = [verdict.outcome for _, verdict in verdicts()]
    rows = [(outcome, f"{outcomes.count(outcome)}") for outcome in (HOLDS, FAILS, UNKNOWN)]
    return markdown(("verdict", f"of {len(outcomes)} claims"), rows)


def claims_that_fail() -> str:
    """The claims that do not hold here."""
    failed = [(c, v) for c, v in verdicts() if v.outcome == FAILS]
    return markdown(
        ("claim that does not hold", "section"), [(c.sentence, c.section) for c, _ in failed]
    )


def claims_decided() -> str:
    """Every claim that the data decide."""
    return claims_table("", [r for r in verdicts() if r[1].outcome != UNKNOWN]).markdown()


def claims_undecided() -> str:
    """Every claim that the data do not decide."""
    return claims_table("", [r for r in verdicts() if r[1].outcome == UNKNOWN]).markdown()


# --- fidelity


def pearl_noise() -> str:
    """PEARL on T-LS, by the noise with which the update samples its latent."""
    words = {
        "stored": "the rollout's samples (ours)",
        "fresh": "new samples (`fresh`)",
        "none": "means (`none`, as in the authors' code)",
    }
    rows = []
    for method in ("pearl", "pearl-gru"):
        runs = {_noise(run): run for run in evidence().runs if _is_noise_experiment(run, method)}
        for noise in (n for n in words if n in runs):
            (members,) = runs[noise].members.values()
            rate = best_rate(members)
            curves, last = members.curves(rate), _last_tenth(members.frames)
            numbers = f"{curves.mean():.2f}", f"{curves[:, last].mean():.2f}"
            rows.append((f"`{method}`", words[noise], f"{rate:g}", *numbers))
    head = ("encoder", "latent in the update", "best rate", "mean return over training")
    return markdown((*head, "in its last tenth"), rows)


def _noise(run: RecordedRun) -> str:
    return run.record.plan["ppo"].get("update_noise", "stored")


def _is_noise_experiment(run: RecordedRun, method: str) -> bool:
    plan = run.record.plan
    return (
        run.name == ("t-ls", method)
        and plan["seeds"] == [0, 1, 2]
        and len(plan["kl_weights"]) == 1
        and len(plan["rates"]) > 1
    )


def _last_tenth(frames: np.ndarray) -> np.ndarray:
    return frames >= 0.9 * frames[-1]


def _planning(method: str) -> Any:
    """The curves of a method's sweep on the Planning Game."""
    folders = find_runs(ROOT / "results" / "planning" / method)
    (sweep,) = [f for f in folders if len(f.record().plan["rates"]) > 1]
    return sweep.curves()


def planning_by_rate() -> str:
    """SplAgger and the RNN on the Planning Game, rate by rate."""
    rates = (0.003, 0.001, 0.0003, 0.0001, 0.00003)
    rows = []
    for method in ("rnn", "splagger", "splagger-nornn"):
        curves = _planning(method)
        late = curves[_last_tenth_rows(curves)]
        mean = lambda table, rate: table[table["rate"] == rate]["return"].mean()  # noqa: E731
        cells = [f"{mean(curves, rate):.2f} / {mean(late, rate):.2f}" for rate in rates]
        rows.append((f"`{method}`", *cells))
    return markdown(("method", *(f"{rate:.5f}".rstrip("0") for rate in rates)), rows)


def _last_tenth_rows(curves: Any) -> Any:
    return curves["frames"] >= 0.9 * curves["frames"].max()


def planning_details() -> str:
    """What explains the difference between SplAgger and the RNN on the Planning Game."""
    columns = [_planning_column(method) for method in ("rnn", "splagger")]
    values = np.array([_reward_within_task(m) for m in ("rnn", "splagger")])
    rows = [(name, *(c[name] for c in columns)) for name in columns[0]]
    for index, steps in enumerate(("steps 20 to 49", "the last 30 steps")):
        cells = (f"{value:.2f}" for value in values[:, index])
        rows.append((f"small agents: return in {steps} of a task", *cells))
    return markdown(("", "RNN", "SplAgger"), rows)


def _planning_column(method: str) -> dict[str, str]:
    curves = _planning(method)
    best = curves[curves["rate"] == 0.001].groupby("frames")["return"].mean()
    reached = (best.rolling(5).mean() >= EXPLORES).idxmax()
    late = curves[_last_tenth_rows(curves)]
    entropy = late[late["rate"] == 0.001]["entropy"].mean()
    large = late[late["rate"] == 0.003].groupby("seed")["return"].mean().sort_values()
    return {
        f"frames until the mean return reaches {EXPLORES} (rate 0.001)": f"{reached / 1e6:.1f} M",
        "policy entropy in the last tenth (rate 0.001)": f"{entropy:.3f} nats",
        "returns of the three seeds in the last tenth (rate 0.003)": ", ".join(
            f"{value:.2f}" for value in large
        ),
    }


def _reward_within_task(method: str) -> tuple[float, float]:
    """Reward in steps 20 to 49 and 70 to 99 of a task, of small agents."""
    small = Evidence([], analyses=ROOT / "results" / "analysis-small")
    values = small.analysis(AnalysisKey("adaptation", "planning"), method)
    assert values is not None
    reward = values.values.mean(axis=(0, 1))
    return float(reward[20:50].sum()), float(reward[70:100].sum())


# --- speed


def speed() -> str:
    """Training speed of full-size SplAgger on T-LS."""
    files = {
        "2 CPU cores": "train-t-ls-cpu",
        "2 CPU cores, program from the cache": "train-t-ls-cpu-cached",
        "NVIDIA H200": "train-t-ls-h200",
    }
    head = ("machine", "runs in the program", "training frames/s", "with evaluations")
    return markdown((*head, "compilation", "memory"), [_speed(*item) for item in files.items()])


def _speed(machine: str, file: str) -> tuple[str, ...]:
    found = measured(file)
    memory = found["peak_device_memory_gb"] or found["peak_host_memory_gb"]
    return (
        machine,
        f"{found['runs']}",
        f"{found['frames_per_second']:,.0f}",
        f"{found['frames_per_second_with_evaluation']:,.0f}",
        f"{found['compile_seconds']:.1f} s",
        f"{memory:.1f} GB",
    )


def speed_by_task() -> str:
    """Training speed on one H200, 15 runs in one program."""
    files = {
        "T-LS, SplAgger": "train-t-ls-h200",
        "Planning Game, SplAgger": "train-planning-h200",
        "T-LS, LSTM": "train-t-ls-lstm-h200",
    }
    rows = []
    for name, file in files.items():
        found = measured(file)
        seconds = found["compile_seconds"] if file != "train-t-ls-lstm-h200" else None  # not alone
        rows.append(
            (
                name,
                f"{found['frames_per_second']:,.0f}",
                f"{found['frames_per_second_with_evaluation']:,.0f}",
                f"{1e3 * found['seconds_per_update']:.0f}",
                f"{seconds:.1f} s" if seconds else "–",
                f"{found['peak_device_memory_gb']:.1f} GB",
                f"`benchmarks/results/{file}.json`",
            )
        )
    head = ("experiment", "training frames/s", "with evaluations", "ms per update", "compilation")
    return markdown((*head, "GPU memory", "file"), rows)


def parts() -> str:
    """Speed of single parts on two CPU cores."""
    found, robots = measured("parts-cpu"), measured("mujoco-cpu")["steps_per_second"]
    network, steps = found["hypernetwork"], found["environment_steps_per_second"]
    memory = (
        f"{network['fused_memory_mb']:,.0f} MB instead of {network['generated_memory_mb']:,.0f} MB"
    )
    rows = [
        (
            "fused hypernetwork, 2,800 samples",
            f"{network['speedup']:.1f} times as fast as generated weights, in {memory}",
        ),
        *(
            (
                f"65,536 environments of `{env}`",
                f"{steps[env]['65536'] / 1e6:.1f} M steps per second",
            )
            for env in ("t-ls", "planning", "mc-ls")
        ),
        *(
            (f"{count} Cheetahs in training", f"{robots[count]['training']:,.0f} steps per second")
            for count in ("240", "16")
        ),
        (
            "16 Cheetahs in Gymnasium's AsyncVectorEnv",
            f"{robots['16']['gymnasium']:,.0f} steps per second",
        ),
    ]
    return markdown(("part", "on two CPU cores"), rows)


def growth_runs() -> str:
    """How cost grows with the runs in one program."""
    found = measured("growth-runs-gpu")["rows"]
    rows = [
        ("training frames/s", *(f"{r['frames_per_second']:,.0f}" for r in found)),
        ("milliseconds per update", *(f"{1e3 * r['seconds_per_update']:,.0f}" for r in found)),
        ("GPU memory", *(f"{r['peak_device_memory_gb']:.1f} GB" for r in found)),
    ]
    return markdown(("runs in one program", *(f"{r['runs']}" for r in found)), rows)


def growth_envs() -> str:
    """How cost grows with the environments of one run."""
    found = measured("growth-envs-gpu")["rows"]
    rows = [
        ("training frames/s", *(f"{r['frames_per_second']:,.0f}" for r in found)),
        ("milliseconds per update", *(f"{1e3 * r['seconds_per_update']:,.0f}" for r in found)),
    ]
    return markdown(("environments per run", *(f"{r['envs']:,}" for r in found)), rows)


def growth_length() -> str:
    """An aggregator on sequences of growing length."""
    found = measured("growth-length-gpu")["rows"]
    lengths = [f"{r.get('steps', r.get('length')):,}" for r in found]
    rows = [
        (name, *(f"{1e3 * r[key]:.1f} ms" for r in found))
        for name, key in (("associative scan", "scan_seconds"), ("step by step", "step_seconds"))
    ]
    return markdown(("steps", *lengths), rows)


def together() -> str:
    """Several programs on one GPU, frames per second."""
    found = {
        row["programs"]: row["frames_per_second"]
        for row in measured("together-planning-h200")["rows"]
    }
    rows = [
        (
            style_of(method).label,
            *(f"{found[n][method]:,.0f}" if method in found[n] else "–" for n in (1, 2, 3)),
        )
        for method in ("splagger", "rnn", "splagger-nornn")
    ]
    rows.append(("together", *(f"{sum(found[n].values()):,.0f}" for n in (1, 2, 3))))
    return markdown(("programs at a time", "1", "2", "3"), rows)


TABLES: dict[str, Callable[[], str]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        rooms,
        environments,
        classic_environments,
        methods,
        figures,
        returns,
        claim_counts,
        claims_that_fail,
        claims_decided,
        claims_undecided,
        pearl_noise,
        planning_by_rate,
        planning_details,
        speed,
        speed_by_task,
        parts,
        growth_runs,
        growth_envs,
        growth_length,
        together,
        storm,
        saving,
    )
}


@ft.cache
def _table(name: str) -> str:
    return lookup(TABLES, name, "table")()


def refreshed(text: str) -> str:
    """Returns a page with the present content of its tables."""
    block = lambda found: f"<!-- table: {found[1]} -->\n\n{_table(found[1])}\n\n<!-- end -->"  # noqa: E731
    return BLOCK.sub(block, text)


def main() -> int:
    """Writes every page that is out of date; prints their names."""
    for page in PAGES:
        text = page.read_text()
        if (new := refreshed(text)) != text:
            page.write_text(new)
            print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
