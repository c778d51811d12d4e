"""From names to files: who is analyzed, and where the numbers go."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from splagger.agents.player import Player
from splagger.analysis.measure import measure
from splagger.analysis.options import Options
from splagger.analysis.subjects import Subject, fresh, trained
from splagger.analysis.table import ANALYSES, Analysis
from splagger.errors import RunError, SettingError
from splagger.methods import METHODS
from splagger.registry import ENVS
from splagger.runs.analyses import DESCRIPTION, read_description, write_analysis
from splagger.runs.provenance import provenance
from splagger.tables import lookup
from splagger.training.compiler import set_up_compiler

RunLike = str | Path | Player
OUT = "results/analysis"


def analyze(
    name: str,
    runs: RunLike | Sequence[RunLike] = (),
    out: str | Path = OUT,
    options: Options | None = None,
    force: bool = False,
) -> list[Path]:
    """Writes <out>/<analysis>/<when>/ and returns these folders. `name` may be "all".

    With `runs` (folders, or what `load` gave) their trained agents are analyzed, `when` being the
    environment; without, fresh agents at "initialization". All runs of an environment belong in one
    call, which replaces what was there; what was made with other options or of other agents only by `force`.
    """
    options = options or Options()
    options.check()
    runs = [runs] if isinstance(runs, str | Path | Player) else list(runs)
    chosen = list(ANALYSES.values()) if name == "all" else [lookup(ANALYSES, name, "analysis")]
    set_up_compiler()
    subjects = [trained(run, options.every_seed) for run in runs]
    _check_distinct(subjects)
    origin = provenance(_command(name, runs, out, options))
    written = []
    for analysis in chosen:
        wanted = subjects if runs else _fresh_subjects(analysis, options)
        fitting = [subject for subject in wanted if analysis.suits(subject.agents.memory)]
        if len(fitting) < len(wanted) and name != "all":
            unfit = sorted({s.method for s in wanted} - {s.method for s in fitting})
            raise SettingError(f"{name} needs {analysis.needs}; not so {', '.join(unfit)}")
        for when in sorted({subject.when for subject in fitting}):
            group = [subject for subject in fitting if subject.when == when]
            if not force:
                _check_same(analysis, group, Path(out), options)
            written.append(_write(analysis, group, Path(out), options, origin))
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
) -> Path:
    """Measures these subjects, all of one environment, and writes the numbers and where they come from."""
    lines, inputs = [], []
    for subject in subjects:
        values, notes = measure(analysis, subject, options)
        lines += values
        inputs += notes
    folder = out / analysis.name / subjects[0].when
    description = {
        "analysis": analysis.name,
        "summary": analysis.summary,
        "when": subjects[0].when,
        "env": subjects[0].env_name,
        "usual": all(_usual(subject) for subject in subjects),
        "sequences": analysis.sequences,
        "options": asdict(options),
        "agents": {subject.method: subject.origin for subject in subjects},
        "inputs": inputs,
        "provenance": origin,
    }
    write_analysis(folder, lines, description)
    return folder


def _usual(subject: Subject) -> bool:
    """Whether the environment is as its row has it: of another size, other returns mean something."""
    row = ENVS.get(subject.env_name)
    return row is not None and bool(row.meta == subject.env)


def _check_same(analysis: Analysis, subjects: list[Subject], out: Path, options: Options) -> None:
    """Numbers that took long are not replaced by others unasked."""
    folder = out / analysis.name / subjects[0].when
    if not (folder / DESCRIPTION).is_file():
        return
    made = read_description(folder)
    now = {"options": asdict(options), "agents": {s.method: s.origin for s in subjects}}
    for about, value in json.loads(json.dumps(now)).items():
        before = made.get(about, {})
        differ = [k for k in before.keys() | value.keys() if before.get(k) != value.get(k)]
        if differ:
            text = ", ".join(f"{k} {before.get(k)} (now {value.get(k)})" for k in sorted(differ))
            raise RunError(
                f"{folder} holds an analysis with other {about}: {text}; --out puts this one elsewhere, "
                "--force replaces that one"
            )


def _check_distinct(subjects: list[Subject]) -> None:
    """Lines of values.csv are told apart by environment, method and seed."""
    seen = set()
    for subject in subjects:
        if (subject.when, subject.method) in seen:
            raise SettingError(
                f"two runs of {subject.method} on {subject.when} cannot be told apart in one analysis; "
                "give one of them, and another --out for the other"
            )
        seen.add((subject.when, subject.method))


def _command(name: str, runs: list[RunLike], out: str | Path, options: Options) -> str:
    """The command line that does the same."""
    words = ["splagger", "analyse", name]
    if runs:
        words += ["--run", *(_path(run) for run in runs)]
    if str(out) != OUT:
        words += ["--out", str(out)]
    return f"{shlex.join(words)} {options.command()}".strip()


def _path(run: RunLike) -> str:
    """Where a run lies."""
    return str(run.path if isinstance(run, Player) else run)
