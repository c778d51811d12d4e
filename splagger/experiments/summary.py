"""Runs in one line each, or in one picture."""

from pathlib import Path

from splagger.figures.contestants import contestants
from splagger.figures.curves import curves_of
from splagger.figures.draw import PLAIN, picture
from splagger.figures.evidence import Evidence, Recorded
from splagger.figures.members import best_rate, members_of
from splagger.figures.panels import Figure
from splagger.figures.scales import Mark, marks
from splagger.recorded import RecordedRun, RunError
from splagger.registry import ENVS


def summarize(folder: RecordedRun) -> tuple[str, ...]:
    """(environment, method, best rate, mean return of training, final return, speed, folder)."""
    record, parts = folder.read(), members_of(folder)
    arguments = record["arguments"]
    members = max(parts.values(), key=lambda m: m.curves(best_rate(m)).mean())
    rate = best_rate(members)
    curves = members.curves(rate)
    return (
        arguments["env"],
        arguments["method"],
        f"{rate:g}",
        f"{curves.mean():.2f}",
        f"{curves[:, -1].mean():.2f} ({len(curves)} seeds)",
        f"{record.get('frames_per_second') or 0:,.0f}",
        str(folder.path),
    )


def plot(*roots: str | Path, path: str | Path) -> None:
    """Draws the runs below `roots`, all of one environment: a line for each method with its settings, at its
    best rate, on fresh seeds where there are some."""
    runs = Evidence.read(*roots).runs
    if not runs:
        raise RunError(f"no run folder in {', '.join(map(str, roots)) or 'nothing'}")
    names = sorted({run.name[0] for run in runs})
    if len(names) > 1:
        raise RunError(f"one picture shows one environment, these are {', '.join(names)}")
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in PLAIN:
        raise RunError(f"{path}: pictures are written as {', '.join(PLAIN)}")
    found = curves_of(contestants(runs), _marks(runs))
    Path(path).write_bytes(picture(Figure(names[0], names[0], "", (found[0],)), [found], kind))


def _marks(runs: list[Recorded]) -> tuple[Mark, ...]:
    """Returns that mean something in their environment, if all were trained in it as it is usually."""
    row = ENVS.get(runs[0].name[0])
    arguments = [run.record["arguments"] for run in runs]
    changed = [a for a in arguments if any(k.startswith("env.") for k in a.get("overrides", {}))]
    changed += [a for a in arguments if row and a.get("episodes", row.episodes) != row.episodes]
    return marks(row.name, row.best_return) if row and not changed else ()
