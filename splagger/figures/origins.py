"""The report's account of how results came about: settings and runs, as their folders tell them."""

from typing import Any

from splagger.figures.evidence import Evidence, Recorded
from splagger.figures.html import Markup, code, details, join, table, tag

HEAD = ("run", "command", "commit", "device", "wall time", "frames/s", "state")
ANALYSIS = ("analysis", "command", "commit", "device", "options")


def runs(evidence: Evidence) -> Markup:
    """A row for each run folder, and one for each analysis."""
    made = [_analysis(*item) for item in evidence.analyses_made().items()]
    analyses = table("Analyses", ANALYSIS, made) if made else join()
    return join(_runs(evidence), analyses)


def _analysis(name: tuple[str, str], record: dict[str, Any]) -> tuple[str, ...]:
    origin = record.get("provenance") or {}
    return (
        " · ".join(name),
        code(str(origin.get("command", "unknown"))),
        code(str(origin.get("commit", "unknown"))),
        str(origin.get("device", "unknown")),
        _words(record.get("options") or {}),
    )


def _runs(evidence: Evidence) -> Markup:
    return table("Recorded runs", HEAD, [_run(run, evidence.counts(run)) for run in evidence.runs])


def _run(run: Recorded, counts: bool) -> tuple[str, ...]:
    record, origin = run.record, run.record.get("provenance", {})
    speed = record.get("frames_per_second")
    return (
        f"{' · '.join(run.name)} · {run.path.name}",
        code(str(origin.get("command", "unknown"))),
        code(str(origin.get("commit", "unknown"))),
        str(origin.get("device", "unknown")),
        _time(record.get("seconds")),
        f"{speed:,.0f}" if isinstance(speed, int | float) else "unknown",
        _state(record) + ("" if counts else ", not shown above: other settings, or unfinished"),
    )


def _state(record: dict[str, Any]) -> str:
    state = "finished" if record.get("finished") else "unfinished"
    stopped = len(record.get("stopped") or ())
    return f"{state}, {stopped} diverged" if stopped else state


def _time(seconds: Any) -> str:
    """
    >>> _time(3700), _time(75.4), _time(9.5), _time(None)
    ('1 h 01 min', '1 min 15 s', '9.5 s', 'unknown')
    """
    if not isinstance(seconds, int | float):
        return "unknown"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return (
        f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min {rest} s"
    )


def settings(evidence: Evidence) -> Markup:
    """Hyper-parameters: a table an environment, and a row a method."""
    newest: dict[str, dict[str, Any]] = {}
    methods: dict[str, dict[str, Any]] = {}
    for run in evidence.runs:
        if not run.record["arguments"].get("overrides"):
            env, method = run.name
            newest[env] = run.record["run"]
            methods[method] = run.record["run"].get("method", {})
    memories = [(name, _words(found)) for name, found in sorted(methods.items())]
    parts = [table("Methods", ("method", "settings"), memories)]
    for env, plan in sorted(newest.items()):
        rows = [
            (f"{part}.{name}", _words(value))
            for part in ("environment", "ppo", "network")
            for name, value in (plan.get(part) or {}).items()
        ]
        rows.append(("episodes of a task", _words(plan.get("episodes", "unknown"))))
        parts.append(details(env, table(f"Settings of {env}", ("setting", "value"), rows)))
    about = "Learning rates and seeds are in the runs' commands below."
    return join(tag("p", about), *parts)


def _words(value: Any) -> str:
    """Settings in one line.

    >>> _words({"kind": "Max", "floor": 0.0}), _words([32, 8]), _words(None)
    ('Max(floor 0.0)', '32, 8', 'none')
    """
    if isinstance(value, dict):
        inner = ", ".join(f"{k} {_words(v)}" for k, v in value.items() if k != "kind")
        return f"{value['kind']}({inner})" if "kind" in value else inner
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    return "none" if value is None else str(value)
