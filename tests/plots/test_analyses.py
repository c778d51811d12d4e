"""The pictures of analyses whose values are curves, from written files."""

import json

import numpy as np
import pandas
import pytest

from splagger.analysis import ANALYSES
from splagger.plots import analyses
from splagger.plots.analyses import LABELS, draw_analysis
from tests.synthetic import write_analysis


@pytest.fixture
def drawn(monkeypatch):
    """Collects each panel and its lines instead of drawing them."""
    seen = []
    monkeypatch.setattr(analyses, "picture", lambda figure, parts, kind: seen.extend(parts) or b"")
    return seen


def write(root, name, when, methods):
    folder = write_analysis(root, name, when, {m: lambda step: step + 1.0 for m in methods})
    record = json.loads((folder / "analysis.json").read_text())
    (folder / "analysis.json").write_text(json.dumps(record | {"agents": dict.fromkeys(methods)}))
    return folder


def test_every_analysis_has_a_picture():
    assert {"memory", "adaptation"} | set(LABELS) == set(ANALYSES)


@pytest.mark.parametrize("name", LABELS)
def test_the_picture_shows_every_method_over_the_steps(tmp_path, drawn, name):
    methods = ("pearl",) if name == "pearl-variance" else ("rnn", "splagger")
    folder = write(tmp_path, name, "initialization", methods)
    assert draw_analysis(folder) == [folder / f"{name}.png"]
    ((panel, lines),) = drawn
    assert panel.title.endswith("untrained")
    shown = [line for line in lines if line.source in ("", "mean")]
    assert [line.method for line in shown] == list(methods)
    for line in shown:
        np.testing.assert_allclose(line.mean, line.x + 1.0, rtol=0.2)


def test_other_analyses_draw_themselves(tmp_path):
    assert draw_analysis(tmp_path / "memory" / "t-ls") == []


@pytest.mark.parametrize("name", ["permutation", "pearl-variance"])
def test_lines_end_with_the_shortest_task(tmp_path, drawn, name):
    """A mean over seeds of which some have ended would be no number, and its label would have no place."""
    folder = write(tmp_path, name, "initialization", ("pearl",))
    table = pandas.read_csv(folder / "values.csv")
    table[(table["seed"] == 0) | (table["step"] < 37)].to_csv(folder / "values.csv", index=False)
    draw_analysis(folder)
    ((_, lines),) = drawn
    assert {len(part) for line in lines for part in (line.x, line.mean, line.low, line.high)} == {
        37
    }
    line = lines[-1]
    assert line.x[-1] == 36 and all(len(part) == 37 for part in (line.mean, line.low, line.high))
    assert np.isfinite(line.mean).all()
