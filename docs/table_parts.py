"""What all tables of the docs share: Markdown, and the results files of the benchmarks."""

import json
from pathlib import Path
from typing import Any

from splagger.tables import Table

MEASURED = Path(__file__).parents[1] / "benchmarks" / "results"


def markdown(head: tuple[str, ...], rows: Any) -> str:
    return Table("", head, list(rows)).markdown()


def measured(name: str) -> Any:
    """A results file of the benchmarks."""
    return json.loads((MEASURED / f"{name}.json").read_text())
