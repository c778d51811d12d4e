"""One table per kind of result; the terminal, the HTML report, the docs and the README render them."""

from collections.abc import Iterator
from typing import Any

from splagger.paper.claims import Claim
from splagger.paper.verdicts import UNDECIDED, Finding, Verdict
from splagger.paper_numbers import PAPER
from splagger.plots.styles import style_of
from splagger.runs.analyses import AnalysisKey
from splagger.runs.folder import RunFolder
from splagger.runs.record import setting_of
from splagger.stats.estimates import Estimate, interval
from splagger.stats.evidence import Evidence, Series
from splagger.stats.recorded import RecordedRun
from splagger.stats.returns import across, returns
from splagger.stats.selection import ONE_RATE, seeds_in_words
from splagger.stats.summary import summarize
from splagger.tables import Table, count, differing

Results = list[tuple[Claim, Verdict]]


def summary_table(folders: list[RunFolder]) -> Table:
    """Returns one row per run folder: the best rate by mean return over training, and its returns."""
    found = [summarize(folder) for folder in folders]
    default = lambda row, name: setting_of(found[row].plan, name)  # noqa: E731
    settings = differing([s.settings for s in found], [(s.env, s.method) for s in found], default)
    rows = [
        (
            s.env,
            s.method,
            ", ".join(words),
            f"{s.rate:g}",
            f"{s.mean_return:.2f}",
            f"{s.final_return:.2f} ({count(s.seeds, 'seed')}{_diverged(s.diverged)})",
            f"{s.frames_per_second or 0:,.0f}",
            s.folder,
        )
        for s, words in zip(found, settings, strict=True)
    ]
    head = ("environment", "method", "settings", "best rate", "mean return", "final return")
    table = Table("Results", (*head, "frames/s", "folder"), rows)
    return table if any(settings) else table.without("settings")


def _diverged(agents: int) -> str:
    return f", {agents} diverged" if agents else ""


def comparison_tables(found: Any) -> list[Table]:
    """Returns one table per environment from the data frame of `splagger.compare`."""
    head = ("method", "settings", "frames", "rate", "seeds", "IQM over training", "IQM at the end")
    tables = []
    for env, part in found.groupby("env", sort=False):
        rows = [
            (
                row.method,
                row.settings,
                f"{row.frames:,}" + _cut(row.frames, row.trained_frames),
                f"{row.rate:g}",
                seeds_in_words(row.seeds, row.source, row.diverged),
                interval(Estimate(row.training, row.training_low, row.training_high)),
                interval(Estimate(row.end, row.end_low, row.end_high)),
                "reference"
                if row.is_reference
                else f"{row.probability:.2f}"
                if row.probability == row.probability
                else "",
            )
            for row in part.astype({"probability": float}).itertuples()
        ]
        named = " or ".join(filter(None, part["reference"].unique()))
        reference = f"P(better than {named})" if named else "P"
        tables.append(Table(str(env), (*head, reference), rows))
    return tables


def comparison_notes(found: Any) -> Iterator[str]:
    """Yields what a reader of `comparison_tables` must know: what was cut, left out or repeated."""
    yield from filter(None, [found.attrs.get("left_out")])
    for env, part in found.groupby("env", sort=False):
        cut = part[part["frames"] < part["trained_frames"]]
        shortest = part[part["cuts_others"]]
        if len(cut):
            names = (
                " ".join(filter(None, (row.method, row.settings))) for row in shortest.itertuples()
            )
            yield f"{env}: compared over the frames that all runs have; the shortest: {', '.join(names)}"
        if any(cut["annealed"]):
            yield f"{env}: learning rates are annealed, so a run that is cut is at another rate than one that ended"
        for row in part[part["notes"] != ""].itertuples():
            yield f"{env}, {' '.join(filter(None, (row.method, row.settings)))}: {row.notes}"
    if any(found["seeds"] == 1):
        yield "one seed gives neither an interval nor a probability; train several (--seeds)"
    if any(found["diverged"]):
        yield "agents that diverged count with their return before training from then on"
    if set(found["source"]) - {ONE_RATE}:
        yield "seeds: 'fresh' and 'held out' seeds were not used to choose the rate, 'same' seeds were"


def _cut(frames: int, trained: int) -> str:
    return f" of {trained:,}" if trained > frames else ""


def returns_table(evidence: Evidence) -> Table:
    """Returns one row per method and environment, with the paper's statistic and unbiased ones."""
    rows = [
        (
            row.series.env,
            style_of(row.series.method).label,
            f"{row.as_in_paper.rate:g}",
            f"{row.as_in_paper.curves.mean():.2f} ({count(len(row.as_in_paper.curves), 'seed')}"
            f"{_diverged(row.as_in_paper.diverged)})",
            f"{row.unbiased.rate:g}",
            row.unbiased.seeds,
            millions(evidence, row.series),
            interval(row.training),
            interval(row.end),
            "" if row.probability is None else f"{row.probability:.2f}",
        )
        for row in returns(evidence)
    ]
    head = ("environment", "method", "best rate", "mean over training, as in the paper")
    head += (
        "rate",
        "seeds",
        "million frames",
        "IQM over training",
        "IQM at the end",
        "P(SplAgger better)",
    )
    return Table("Returns per meta-episode", head, rows)


def millions(evidence: Evidence, series: Series) -> str:
    """Returns the frames of each run in millions, with the paper's if the runs are shorter."""
    members, protocol = evidence.members(series), PAPER.get(series.env)
    assert members is not None  # recorded series have runs
    trained = f"{members.frames[-1] / 1e6:.3g}"
    return (
        f"{trained} of {protocol.frames / 1e6:g}"
        if protocol and evidence.lacks(series)
        else trained
    )


def across_table(evidence: Evidence, methods: tuple[str, ...]) -> Table | None:
    """Returns normalized returns over the environments on which all `methods` were run; None if there are none."""
    envs, found = across(evidence, methods)
    if not envs:
        return None
    rows = [(style_of(method).label, interval(value)) for method, value in found.items()]
    title = f"Across {', '.join(envs)}: returns over training, 0 = guessing, 1 = best known"
    return Table(title, ("method", "IQM, 95% interval"), rows)


def verdicts_table(results: Results) -> Table:
    """Returns the verdict and the sentence of every claim."""
    decided = sum(verdict.outcome != UNDECIDED for _, verdict in results)
    rows = [(verdict.outcome, claim.sentence) for claim, verdict in results]
    return Table(f"{decided} of {len(results)} claims are decided", ("", ""), rows)


def claims_table(title: str, results: Results) -> Table:
    """Returns every claim with its verdict, its test, and the comparisons it depends on."""
    rows = [
        (
            claim.sentence,
            claim.section,
            verdict.outcome,
            f"{claim.test.words()} ({claim.test.unit})",
            "\n".join(_finding(finding) for finding in verdict.findings),
        )
        for claim, verdict in results
    ]
    return Table(title, ("claim", "section", "verdict", "test", "evidence"), rows)


def _finding(finding: Finding) -> str:
    effect = f"{interval(finding.effect, '+.2f')}; " if finding.effect else ""
    return f"{finding.about}: {effect}{finding.note}"


def runs_table(evidence: Evidence) -> Table:
    """Returns the provenance, wall time and state of each run."""
    head = ("run", "command", "commit", "device", "wall time", "frames/s", "state")
    return Table(
        "Recorded runs", head, [_run(run, evidence.not_counted(run)) for run in evidence.runs]
    )


def _run(run: RecordedRun, not_counted: str) -> tuple[str, ...]:
    record, speed = run.record, run.record.frames_per_second
    state = "failed" if record.failed else "finished" if record.finished else "unfinished"
    state += f", {len(record.stopped)} diverged" if record.stopped else ""
    state += f", {len(record.raced)} stopped in a race" if record.raced else ""
    return (
        f"{' · '.join(run.name)} · {run.path.name}",
        *_origin(record.provenance),
        duration(record.seconds) if record.seconds else "unknown",
        "unknown" if speed is None else f"{speed:,.0f}",
        state + (f", not shown above: {not_counted}" if not_counted else ""),
    )


def analyses_table(evidence: Evidence) -> Table:
    """Returns the provenance and options of each analysis."""
    head = ("analysis", "command", "commit", "device", "options")
    return Table("Analyses", head, [_analysis(*item) for item in evidence.descriptions().items()])


def _analysis(key: AnalysisKey, about: dict[str, Any]) -> tuple[str, ...]:
    return (" · ".join(key), *_origin(about.get("provenance")), words(about.get("options") or {}))


def _origin(provenance: Any) -> tuple[str, str, str]:
    """Returns (command, commit, device)."""
    provenance = provenance or {}
    command, commit, device = (
        str(provenance.get(k, "unknown")) for k in ("command", "commit", "device")
    )
    return command, commit, device


def duration(seconds: float | int) -> str:
    """Returns a time in words.

    >>> duration(3700), duration(75.4), duration(9.5)
    ('1 h 01 min', '1 min 15 s', '9.5 s')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return (
        f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min {rest} s"
    )


def methods_table(evidence: Evidence) -> Table:
    """Returns the settings of every method that was run."""
    found = {run.record.method: run.record.plan.get("method", {}) for run in _defaults(evidence)}
    rows = [(name, words(_used(settings))) for name, settings in sorted(found.items())]
    return Table("Methods", ("method", "settings"), rows)


def _used(method: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of a method; where all neurons skip the aggregator, there is none."""
    return method | {"aggregator": None} if method.get("skip") == 1 else method


def settings_tables(evidence: Evidence) -> list[tuple[str, Table]]:
    """Returns (environment, its settings) for every environment, from one of its runs without overrides."""
    records = {run.record.env: run.record for run in _defaults(evidence)}
    tables = []
    for env, record in sorted(records.items()):
        rows = [
            (f"{part}.{name}", words(value))
            for part in ("environment", "ppo", "network")
            for name, value in (record.plan.get(part) or {}).items()
        ]
        rows.append(("episodes per task", words(record.episodes)))
        tables.append((env, Table(f"Settings of {env}", ("setting", "value"), rows)))
    return tables


def _defaults(evidence: Evidence) -> list[RecordedRun]:
    return [run for run in evidence.runs if not run.record.overrides]


def words(value: Any) -> str:
    """Returns a setting in one line.

    >>> words({"kind": "Max", "floor": 0.0}), words([32, 8]), words(None)
    ('Max(floor 0.0)', '32, 8', 'none')
    """
    if isinstance(value, dict):
        inner = ", ".join(f"{k} {words(v)}" for k, v in value.items() if k != "kind")
        return f"{value['kind']}({inner})" if "kind" in value else inner
    if isinstance(value, list):
        return ", ".join(map(words, value))
    return "none" if value is None else str(value)
