"""The commands that make what a figure still lacks."""

import shlex
from pathlib import Path

from splagger.experiments.grid import Run
from splagger.figures.evidence import Series
from splagger.figures.panels import Made, Missing


def commands(missing: Missing, out: str | Path, analyses: str | Path) -> list[str]:
    """One command a run or analysis; sweeps of one method on one environment are one run."""
    grids: dict[tuple[str, str], list[Series]] = {}
    for series in missing.series:
        grids.setdefault((series.env, series.method), []).append(series)
    trained = [_training(series, out) for series in grids.values()]
    return trained + [_analysis(made, out, analyses) for made in dict.fromkeys(missing.made)]


def _training(series: list[Series], out: str | Path) -> str:
    """`Run.command` of the paper's rates and seeds, written to where figures look."""
    env, method = series[0].env, series[0].method
    try:
        run = _run(series)
    except ValueError as error:
        reason = str(error).partition(";")[0]
        return f"{shlex.join(['splagger', 'train', env, method])}  # not yet: {reason}"
    return f"{run.command()} --out {shlex.quote(str(out))}"


def _run(series: list[Series]) -> Run:
    def swept(values):
        return tuple(dict.fromkeys(value for value in values if value is not None))

    weights = swept(s.kl_weight for s in series)
    temperatures = swept(s.temperature for s in series)
    env, method = series[0].env, series[0].method
    return Run.create(env, method, kl_weights=weights, temperatures=temperatures)


def _analysis(need: Made, out: str | Path, analyses: str | Path) -> str:
    """Of fresh agents, or of PEARL's trained on the environment."""
    words = ["splagger", "analyse", need.name, "--out", str(analyses)]
    if need.when != "initialization":
        run = Run.create(need.when, "pearl")
        folder = Path(out) / run.row.name / run.method.name / run.digest
        words += ["--run", str(folder)]
    return shlex.join(words)
