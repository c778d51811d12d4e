"""`analyze`: runs analyses by name and writes their values to files."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from splagger.agents.player import Player
from splagger.analysis.measure import measure
from splagger.analysis.options import OUT, Options
from splagger.analysis.subjects import Subject, fresh, trained
from splagger.analysis.table import ANALYSES, Analysis
from splagger.errors import RunError, SettingError
from splagger.files.storage import writing
from splagger.methods import METHODS
from splagger.registry import ENVS
from splagger.runs.analyses import DESCRIPTION, read_description, write_analysis
from splagger.runs.provenance import provenance
from splagger.tables import lookup
from splagger.training.compiler import set_up_compiler

RunLike = str | Path | Player


def analyze(
    name: str,
    runs: RunLike | Sequence[RunLike] = (),
    out: str | Path = OUT,
    options: Options | None = None,
    force: bool = False,
    trust: bool = False,
    note: Callable[[str], Any] = lambda text: None,
) -> list[Path]:
    """Runs analyses, writes each to <out>/<name>/<when>/ and returns these folders.

    - `name`: a key of `ANALYSES`, or "all" for every analysis that suits the agents.
    - `runs`: run folders or players whose trained agents are analyzed; `when` is then the environment's name. Pass
      all runs of an environment in one call, because it replaces earlier values. Without `runs`, fresh agents are
      analyzed and `when` is "initialization".
    - `out`: the folder of all analyses.
    - `options`: see `Options`.
    - `force`: also replaces an analysis that was made with other options or of other agents.
    - `trust`: imports and calls what `runs` name, see `splagger.load`.
    - `note`: is called with a line of text before each part of the work.
    """
    options = options or Options()
    options.check()
    runs = [runs] if isinstance(runs, str | Path | Player) else list(runs)
    if options.set and not runs:
        raise SettingError(
            "--set changes the environment of trained agents, which --run names; without them, use --env"
        )
    if options.at is not None and not runs:
        raise SettingError("--at takes snapshots of trained agents, which --run names")
    chosen = list(ANALYSES.values()) if name == "all" else [lookup(ANALYSES, name, "analysis")]
    set_up_compiler()
    subjects = [trained(run, options.every_seed, trust, options.set, options.at) for run in runs]
    _check_distinct(subjects)
    origin = provenance(_command(name, runs, out, options, trust))
    written = []
    for analysis in chosen:
        wanted = subjects if runs else _fresh_subjects(analysis, options)
        fitting = [subject for subject in wanted if analysis.suits(subject.agents.memory)]
        if len(fitting) < len(wanted) and name != "all":
            unfit = sorted({s.method for s in wanted} - {s.method for s in fitting})
            raise SettingError(f"{name} needs {analysis.needs}, which {', '.join(unfit)} lacks")
        for when in sorted({subject.when for subject in fitting}):
            group = [subject for subject in fitting if subject.when == when]
            if not force:
                _check_same(analysis, group, Path(out), options)
            written.append(_write(analysis, group, Path(out), options, origin, note))
    return written


def _fresh_subjects(analysis: Analysis, options: Options) -> list[Subject]:
    row = lookup(ENVS, options.env, "environment")
    seeds = range(options.seeds or analysis.seeds)
    names = options.methods or analysis.methods
    return [fresh(lookup(METHODS, name, "method"), row, seeds) for name in names]


def _write(
    analysis: Analysis,
    subjects: list[Subject],
    out: Path,
    options: Options,
    origin: dict[str, Any],
    note: Callable[[str], Any],
) -> Path:
    """Measures these subjects, all of one environment, and writes the values with their provenance."""
    folder = out / analysis.name / subjects[0].when
    with writing(folder, "choose another --out"):  # before the work
        folder.mkdir(parents=True, exist_ok=True)
    rows, inputs = [], []
    for number, subject in enumerate(subjects, 1):
        note(f"{analysis.name}, {subject.when}: {subject.method} ({number} of {len(subjects)}) …")
        values, notes = measure(analysis, subject, options)
        rows += values
        inputs += notes
    description = {
        "analysis": analysis.name,
        "summary": analysis.summary,
        "when": subjects[0].when,
        "env": subjects[0].env_name,
        "usual": all(_usual(subject) for subject in subjects),
        "sequences": analysis.sequences,
        "options": asdict(options),
        "agents": {subject.method: subject.origin for subject in subjects},
        "seeds": {subject.method: list(subject.seeds) for subject in subjects},
        "inputs": inputs,
        "provenance": origin,
    }
    write_analysis(folder, rows, description)
    return folder


def _usual(subject: Subject) -> bool:
    """Returns whether the environment has its registered settings, on which its reference returns depend."""
    row = ENVS.get(subject.env_name)
    return row is not None and bool(row.meta == subject.env)


def _check_same(analysis: Analysis, subjects: list[Subject], out: Path, options: Options) -> None:
    """Raises a RunError if this would replace an analysis with other options or of other agents."""
    folder = out / analysis.name / subjects[0].when
    if not (folder / DESCRIPTION).is_file():
        return
    recorded = read_description(folder)
    chosen, default = (json.loads(json.dumps(asdict(o))) for o in (options, Options()))
    now = {
        "options": chosen,
        "agents": {s.method: s.origin for s in subjects},
        "seeds": {s.method: list(s.seeds) for s in subjects},
    }
    # Options that are newer than the file had their defaults. The first files had no seeds.
    then = {"seeds": now["seeds"]} | recorded | {"options": default | recorded.get("options", {})}
    for about, value in now.items():
        before = then.get(about, {})
        differ = [k for k in before.keys() | value.keys() if before.get(k) != value.get(k)]
        if differ:
            text = ", ".join(f"{k} {before.get(k)} (now {value.get(k)})" for k in sorted(differ))
            raise RunError(
                f"{folder} holds an analysis with other {about}: {text}; choose another --out, "
                "or replace it with --force"
            )


def _check_distinct(subjects: list[Subject]) -> None:
    """Raises a SettingError if two subjects would have the same rows in values.csv."""
    seen = set()
    for subject in subjects:
        if (subject.when, subject.method) in seen:
            raise SettingError(
                f"two runs of {subject.method} on {subject.when} cannot be distinguished in one analysis; "
                "analyze one of them, and the other with another --out"
            )
        seen.add((subject.when, subject.method))


def _command(name: str, runs: list[RunLike], out: str | Path, options: Options, trust: bool) -> str:
    """Returns the equivalent command; for players the call, because no command selects seeds and environments."""
    if any(isinstance(run, Player) for run in runs):
        given = {"out": str(out), "options": options, "trust": trust}
        default = {"out": OUT, "options": Options(), "trust": False}
        words = [repr(name), f"[{', '.join(map(_call, runs))}]"]
        words += [f"{k}={v!r}" for k, v in given.items() if v != default[k]]
        return f"splagger.analysis.analyze({', '.join(words)})"
    words = ["splagger", "analyse", name]
    if runs:
        words += ["--run", *map(str, runs)]
    if trust:
        words += ["--trust"]
    if str(out) != OUT:
        words += ["--out", str(out)]
    return f"{shlex.join(words)} {options.command()}".strip()


def _call(run: RunLike) -> str:
    """Returns the expression that loads a player; other runs are their paths."""
    if not isinstance(run, Player) or run.run is None:
        return repr(str(run))
    point = run.point._asdict()
    swept = {k: v for k, v in point.items() if len({getattr(p, k) for p in run.run.points}) > 1}
    snapshot = {} if run.at is None else {"at": run.at}
    given = [f"{k}={v!r}" for k, v in (swept | snapshot).items()]
    load = ", ".join([repr(str(run.path)), *given])
    changes = ", ".join(f"{k}={v!r}" for k, v in run.changes.items())
    return f"splagger.load({load})" + (f".with_env({changes})" if changes else "")
