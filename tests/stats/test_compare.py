"""Methods side by side on any task: what counts as one experiment, and who is better."""

import csv

import numpy as np
import pytest

import splagger
from splagger.cli import main
from splagger.errors import RunError
from tests.synthetic import learning, write_run

OWN = "gym:Mine-v0"


def own(root, method, final, name="run", **changes):
    changes = {"overrides": {"env.max_steps": 9}, "seeds": range(5)} | changes
    return write_run(root, OWN, method, learning(final, noise=0.1), name=name, **changes)


def by_method(frame):
    return frame.set_index("method")


def test_methods_on_a_task_of_ones_own_the_best_first(tmp_path):
    own(tmp_path, "rnn", 4.0)
    own(tmp_path, "splagger", 9.0)
    found = splagger.compare(tmp_path)
    assert found["method"].tolist() == ["splagger", "rnn"]
    assert set(found["settings"]) == {""}  # both have the same
    assert set(found["reference"]) == {"splagger"}
    first, second = found.to_dict("records")
    assert np.isnan(first["chance"]) and second["chance"] == 0.0
    for row, final in ((first, 9.0), (second, 4.0)):
        assert row["end_low"] <= row["end"] <= row["end_high"] == pytest.approx(final, abs=0.3)
        assert row["training_low"] <= row["training"] <= row["training_high"] < row["end"]
        assert (row["seeds"], row["source"], row["rate"]) == (5, "one rate", 1e-3)


def test_settings_that_tell_tasks_apart_are_told(tmp_path):
    for size in (5, 8):
        for method in ("rnn", "splagger"):
            given = {"overrides": {"env.kwargs": f'{{"size": {size}}}'}, "episodes": size}
            own(tmp_path, method, size, name=f"of-{size}", **given)
    found = splagger.compare(tmp_path)
    assert set(found["settings"]) == {"size=5, episodes 5", "size=8, episodes 8"}
    assert found["chance"].notna().sum() == 2  # within each task


def test_the_reference_can_be_named_and_without_splagger_it_is_the_best(tmp_path):
    own(tmp_path, "rnn", 4.0)
    own(tmp_path, "lstm", 9.0)
    assert set(splagger.compare(tmp_path)["reference"]) == {"lstm"}
    found = by_method(splagger.compare(tmp_path, reference="rnn"))
    assert found.loc["lstm", "chance"] == 1.0
    with pytest.raises(RunError, match="no run of 'amrl'; there are lstm, rnn"):
        splagger.compare(tmp_path, reference="amrl")


def test_runs_that_differ_by_their_grid_are_one_and_fresh_seeds_are_reported(tmp_path):
    own(tmp_path, "rnn", 4.0, rates=(1e-3, 3e-4), seeds=(0, 1, 2))
    own(tmp_path, "rnn", 5.0, "fresh", rates=(1e-3,), seeds=range(100, 110))
    found = splagger.compare(tmp_path)
    assert found[["seeds", "source"]].values.tolist() == [[10, "fresh"]]


def test_other_settings_are_other_contestants(tmp_path):
    own(tmp_path, "rnn", 4.0)
    own(tmp_path, "rnn", 6.0, "clipped", clip=0.3, overrides={"ppo.clip": 0.3})
    own(tmp_path, "pearl", 5.0, "swept", kl_weights=(1.0, 0.1), overrides={})
    found = splagger.compare(tmp_path)
    assert found["settings"].tolist() == [
        "ppo.clip=0.3", "kl weight 0.1", "kl weight 1", "env.max_steps=9",
    ]  # fmt: skip


def test_other_tasks_and_other_lengths_are_not_compared(tmp_path):
    own(tmp_path, "splagger", 9.0)
    own(tmp_path, "rnn", 4.0, episodes=2)
    short = lambda rate, seed: learning(9.0)(rate, seed)[:20]  # noqa: E731
    write_run(tmp_path, OWN, "lstm", short)
    found = by_method(splagger.compare(tmp_path))
    assert found["chance"].isna().all()
    assert found.loc["rnn", "reference"] == "rnn" and found.loc["lstm", "reference"] == "splagger"


def test_the_command_prints_and_writes(tmp_path, capsys):
    own(tmp_path, "rnn", 4.0)
    own(tmp_path, "splagger", 9.0)
    main(["compare", str(tmp_path), "--csv", str(tmp_path / "table.csv")])
    printed = capsys.readouterr().out
    assert "P(more than splagger)" in printed and OWN in printed
    with open(tmp_path / "table.csv") as handle:
        assert [row["method"] for row in csv.DictReader(handle)] == ["splagger", "rnn"]


def test_nothing_to_compare_is_told(tmp_path):
    with pytest.raises(RunError, match="no run folder in"):
        splagger.compare(tmp_path)
