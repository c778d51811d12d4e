"""The summary of a run."""

import numpy as np
import pytest

from splagger.report.tables import summary_table
from splagger.runs.folder import RunFolder
from splagger.stats import summarize
from tests.synthetic import learning, write_run


def test_a_summary_has_the_best_rate_and_the_final_return(tmp_path):
    curve = lambda rate, seed: learning(16 if rate == 1e-3 else 4, speed=50)(rate, seed)  # noqa: E731
    folder = write_run(tmp_path, "t-ls", "rnn", curve, rates=(3e-3, 1e-3))
    found = summarize(RunFolder(folder))
    assert (found.env, found.method, found.rate, found.seeds) == ("t-ls", "rnn", 1e-3, 3)
    assert found.mean_return == pytest.approx(15.4, abs=0.3)
    assert found.final_return == pytest.approx(16)
    assert (found.frames_per_second, found.folder) == (3200.0, str(folder))
    env, method, rate, mean, final, speed, path = summary_table([RunFolder(folder)]).rows[0]
    assert (env, method, rate, final) == ("t-ls", "rnn", "0.001", "16.00 (3 seeds)")
    assert float(mean) == pytest.approx(15.4, abs=0.3)
    assert (speed, path) == ("3,200", str(folder))


def test_runs_with_other_settings_are_told_apart(tmp_path):
    folders = []
    for skip in (0.25, 0.75):
        overrides = {"method.skip": skip, "method.width": 64}
        curve, root = learning(16, speed=50), tmp_path / str(skip)
        folders.append(write_run(root, "t-ls", "splagger", curve, overrides=overrides))
    table = summary_table([RunFolder(folder) for folder in folders])
    column = table.head.index("settings")
    assert [row[column] for row in table.rows] == ["method.skip=0.25", "method.skip=0.75"]


def test_agents_that_diverged_are_counted(tmp_path):
    def curve(rate, seed):
        return np.where((np.arange(41) > 5) & (seed == 1), np.nan, learning(9)(rate, seed))

    folder = RunFolder(write_run(tmp_path, "t-ls", "rnn", curve))
    assert summarize(folder).diverged == 1
    assert "(3 seeds, 1 diverged)" in summary_table([folder]).text()
