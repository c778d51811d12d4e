"""What all tables of the docs share: Markdown, the recorded results, and the files of the benchmarks."""

import functools as ft
import json
from pathlib import Path
from typing import Any

import numpy as np

from splagger.paper.claims import evaluate_claims
from splagger.stats.evidence import Evidence
from splagger.tables import Table

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "benchmarks" / "results"


def markdown(head: tuple[str, ...], rows: Any) -> str:
    return Table("", head, list(rows)).markdown()


def mean(values: np.ndarray) -> Any:
    """The mean over the last axis, for `estimate`."""
    return values.mean(axis=-1)


def measured(name: str) -> Any:
    """A results file of the benchmarks."""
    return json.loads((MEASURED / f"{name}.json").read_text())


@ft.cache
def evidence() -> Evidence:
    """Everything that is committed under results/."""
    return Evidence.read(ROOT / "results", analyses=ROOT / "results" / "analysis")


@ft.cache
def verdicts() -> list:
    """Every claim with its verdict on the recorded results."""
    return evaluate_claims(evidence())
