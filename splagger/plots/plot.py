"""`plot`: the learning curves of any runs on one environment in one picture."""

from pathlib import Path

from splagger.errors import RunError
from splagger.files.storage import writing
from splagger.paper_numbers import PROTOCOLS, ReferenceLine, reference_lines
from splagger.plots.curves import curves_of
from splagger.plots.draw import METADATA, picture
from splagger.plots.panels import Figure
from splagger.runs.record import RunRecord
from splagger.stats.evidence import Evidence
from splagger.stats.variants import variants


def plot(*roots: str | Path, path: str | Path) -> None:
    """Draws the learning curves of the runs below `roots`, all on one environment, to `path` (PNG, PDF or SVG).

    Each method with its settings is one line, at its best rate, on fresh seeds if there are any.
    """
    runs = Evidence.read_every(*roots).runs
    names = sorted({run.record.env for run in runs})
    if len(names) > 1:
        raise RunError(
            f"a plot shows one environment, these are {', '.join(names)}; plot them one by one"
        )
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in METADATA:
        raise RunError(f"{path} must end in one of {', '.join(METADATA)}")
    drawn = curves_of(variants(runs), _references([run.record for run in runs]))
    data = picture(Figure(names[0], names[0], "", (drawn[0],)), [drawn], kind)
    with writing(path):
        Path(path).write_bytes(data)


def _references(records: list[RunRecord]) -> tuple[ReferenceLine, ...]:
    """Returns the environment's reference lines if all runs used its registered settings."""
    protocol = PROTOCOLS.get(records[0].env)
    changed = [r for r in records if any(name.startswith("env.") for name in r.overrides)]
    changed += [r for r in records if protocol and r.episodes not in (None, protocol.episodes)]
    return () if changed else reference_lines(records[0].env)
