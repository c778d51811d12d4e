"""What a run is and what it leaves behind: description, folder, curves, checkpoints, analyses, provenance.

Reading needs no JAX. `Run` does, so it is imported on first use.
"""

from typing import TYPE_CHECKING, Any

from splagger.runs.axes import AXES as AXES
from splagger.runs.axes import Axis as Axis
from splagger.runs.folder import RunFolder as RunFolder
from splagger.runs.folder import find_runs as find_runs
from splagger.runs.record import RunRecord as RunRecord

if TYPE_CHECKING:
    from splagger.runs.run import Run as Run


def __getattr__(name: str) -> Any:
    if name == "Run":
        from splagger.runs.run import Run

        return Run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
