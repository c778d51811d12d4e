"""Comparisons of methods on any task: what counts as one experiment, and which method is better."""

import csv
import json

import numpy as np
import pandas
import pytest

import splagger
from splagger.cli import main
from splagger.errors import RunError
from splagger.report.tables import comparison_tables, summary_table
from splagger.runs.folder import RunFolder
from splagger.stats.evidence import Evidence, Series
from splagger.stats.members import Members
from splagger.status import overview, status_table
from splagger.zoo.recipes import COMPACT
from tests.synthetic import learning, write_run

CUSTOM = "gym:Custom-v0"


def custom(root, method, final, name="run", **changes):
    changes = {"overrides": {"env.max_steps": 9}, "seeds": range(5)} | changes
    return write_run(root, CUSTOM, method, learning(final, noise=0.1), name=name, **changes)


def by_method(frame):
    return frame.set_index("method")


def test_methods_on_a_custom_task_are_sorted_best_first(tmp_path):
    custom(tmp_path, "rnn", 4.0)
    custom(tmp_path, "splagger", 9.0)
    found = splagger.compare(tmp_path)
    assert found["method"].tolist() == ["splagger", "rnn"]
    assert set(found["settings"]) == {""}  # both have the same
    assert set(found["reference"]) == {"splagger"}
    first, second = found.to_dict("records")
    assert np.isnan(first["probability"]) and second["probability"] == 0.0
    for row, final in ((first, 9.0), (second, 4.0)):
        assert row["end_low"] <= row["end"] <= row["end_high"] == pytest.approx(final, abs=0.3)
        assert row["training_low"] <= row["training"] <= row["training_high"] < row["end"]
        assert (row["seeds"], row["source"], row["rate"]) == (5, "one rate", 1e-3)


def test_settings_that_distinguish_tasks_are_shown(tmp_path):
    for size in (5, 8):
        for method in ("rnn", "splagger"):
            given = {"overrides": {"env.kwargs": f'{{"size": {size}}}'}, "episodes": size}
            custom(tmp_path, method, size, name=f"of-{size}", **given)
    found = splagger.compare(tmp_path)
    assert set(found["settings"]) == {"size=5, episodes 5", "size=8, episodes 8"}
    assert found["probability"].notna().sum() == 2  # within each task


def test_the_reference_can_be_chosen_and_defaults_to_the_best_without_splagger(tmp_path):
    custom(tmp_path, "rnn", 4.0)
    custom(tmp_path, "lstm", 9.0)
    assert set(splagger.compare(tmp_path)["reference"]) == {"lstm"}
    found = by_method(splagger.compare(tmp_path, reference="rnn"))
    assert found.loc["lstm", "probability"] == 1.0
    with pytest.raises(RunError, match="no run of 'amrl'; there are lstm, rnn"):
        splagger.compare(tmp_path, reference="amrl")


def test_runs_that_differ_only_in_their_grid_are_pooled_and_fresh_seeds_are_reported(tmp_path):
    custom(tmp_path, "rnn", 4.0, rates=(1e-3, 3e-4), seeds=(0, 1, 2))
    custom(tmp_path, "rnn", 5.0, "fresh", rates=(1e-3,), seeds=range(100, 110))
    found = splagger.compare(tmp_path)
    assert found[["seeds", "source"]].values.tolist() == [[10, "fresh"]]


def test_fresh_seeds_belong_to_a_sweep_that_was_a_race(tmp_path):
    custom(tmp_path, "rnn", 4.0, rates=(1e-3, 3e-4), seeds=(0, 1, 2), race=True)
    custom(tmp_path, "rnn", 5.0, "fresh", rates=(1e-3,), seeds=range(100, 110))
    assert splagger.compare(tmp_path)["source"].tolist() == ["fresh"]


def test_the_rate_is_chosen_over_the_frames_that_all_have(tmp_path):
    """A rate that is best in the end only is not shown in the frames before."""

    def curve(rate, seed):
        return learning(9.0, speed=30)(rate, seed) if rate == 3e-3 else slow(rate, seed)

    slow = lambda rate, seed: np.linspace(0, 30, 41) + 0 * seed  # noqa: E731
    write_run(tmp_path, CUSTOM, "splagger", curve, rates=(3e-3, 1e-3))
    write_run(tmp_path, CUSTOM, "lstm", lambda rate, seed: learning(5.0)(rate, seed)[:11])
    assert by_method(splagger.compare(tmp_path)).loc["splagger", "rate"] == 3e-3
    alone = splagger.compare(tmp_path / CUSTOM / "splagger")
    assert alone["rate"].tolist() == [1e-3]


def test_a_method_that_failed_at_once_does_not_hide_the_others(tmp_path):
    custom(tmp_path, "splagger", 9.0)
    failed = lambda rate, seed: np.append(2.0, np.full(40, np.nan))  # noqa: E731
    write_run(tmp_path, CUSTOM, "rnn", failed, reached=1_000)
    found = by_method(splagger.compare(tmp_path))
    assert found.loc["splagger", "training"] > 6 and found.loc["rnn", "training"] == 2.0


def test_other_settings_are_other_variants(tmp_path):
    custom(tmp_path, "rnn", 4.0)
    custom(tmp_path, "rnn", 6.0, "clipped", clip=0.3, overrides={"ppo.clip": 0.3})
    custom(tmp_path, "pearl", 5.0, "swept", kl_weights=(1.0, 0.1), overrides={})
    found = splagger.compare(tmp_path)
    assert found["settings"].tolist() == [
        "ppo.clip=0.3", "kl weight 0.1", "kl weight 1", "env.max_steps=9, ppo.clip=0.05",
    ]  # fmt: skip


def test_a_varied_setting_is_shown_where_it_has_its_default(tmp_path):
    """But not for other methods, which may not have been varied."""
    for clip in (0.05, 0.3):
        overrides = {"ppo.clip": clip} if clip != 0.05 else {}
        custom(tmp_path, "splagger", 9.0 - clip, f"clip {clip}", clip=clip, overrides=overrides)
    write_run(tmp_path, CUSTOM, "rnn", learning(4.0))
    found = splagger.compare(tmp_path)
    assert found["settings"].tolist() == ["ppo.clip=0.05", "ppo.clip=0.3", ""]
    folders = [RunFolder(tmp_path / CUSTOM / "splagger" / f"clip {c}") for c in (0.05, 0.3)]
    assert [row[2] for row in summary_table(folders).rows] == ["ppo.clip=0.05", "ppo.clip=0.3"]


def test_a_run_that_has_only_begun_does_not_end_the_comparison(tmp_path, capsys):
    custom(tmp_path, "splagger", 9.0)
    custom(tmp_path, "rnn", 4.0)
    begun = lambda rate, seed: learning(4.0)(rate, seed)[:1]  # noqa: E731
    write_run(tmp_path, CUSTOM, "lstm", begun, finished=False)
    write_run(tmp_path, CUSTOM, "amrl", lambda rate, seed: np.zeros(0), finished=False, frames=0)
    found = splagger.compare(tmp_path)
    assert found["method"].tolist() == ["splagger", "rnn"] and found.loc[0, "frames"] > 1000
    main(["compare", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "amrl/run (not evaluated yet), lstm on gym:Custom-v0 (only evaluated before" in printed
    assert splagger.compare(tmp_path / CUSTOM / "lstm")["method"].tolist() == ["lstm"]


def test_the_shortest_runs_are_named(tmp_path, capsys):
    """Also if the same method has a longer one."""
    for name, steps, seeds in (("long", 41, (0, 1)), ("short", 38, (2, 3))):
        curve = lambda rate, seed, steps=steps: learning(9.0)(rate, seed)[:steps]  # noqa: E731
        write_run(tmp_path, CUSTOM, "splagger", curve, name=name, seeds=seeds)
    write_run(tmp_path, CUSTOM, "rnn", learning(4.0))
    main(["compare", str(tmp_path)])
    assert "all runs have; the shortest: splagger\n" in capsys.readouterr().out


def test_the_reference_is_marked_among_several_settings_of_its_method(tmp_path, capsys):
    for clip in (0.1, 0.3):
        given = {"clip": clip, "overrides": {"ppo.clip": clip}}
        custom(tmp_path, "splagger", 9.0 - clip, f"clip {clip}", **given)
    found = splagger.compare(tmp_path)
    assert found["is_reference"].tolist() == [True, False]
    (head, *rows) = comparison_tables(found)[0].head, *comparison_tables(found)[0].rows
    assert head[-1] == "P(better than splagger)" and [row[-1] for row in rows] == [
        "reference",
        "0.00",
    ]
    write_run(tmp_path / "one", CUSTOM, "rnn", learning(4.0), seeds=(0,))
    main(["compare", str(tmp_path / "one")])
    assert "one seed gives neither an interval nor a probability" in capsys.readouterr().out


def test_other_tasks_are_not_compared(tmp_path):
    custom(tmp_path, "splagger", 9.0)
    custom(tmp_path, "rnn", 4.0, episodes=2)
    found = by_method(splagger.compare(tmp_path))
    assert found["probability"].isna().all()
    assert found.loc["rnn", "reference"] == "rnn"


def test_runs_of_other_lengths_are_compared_over_the_frames_that_all_have(tmp_path, capsys):
    """A longer run of the same curve is not better: it only had more time to learn."""
    custom(tmp_path, "splagger", 9.0)
    short = lambda rate, seed: learning(9.0)(rate, seed)[:20]  # noqa: E731
    write_run(tmp_path, CUSTOM, "lstm", short)
    found = by_method(splagger.compare(tmp_path))
    assert found["frames"].nunique() == 1
    assert found.loc["splagger", "trained_frames"] > found.loc["splagger", "frames"]
    assert found.loc["splagger", "training"] == pytest.approx(
        found.loc["lstm", "training"], rel=0.01
    )
    assert 0 < found.loc["lstm", "probability"] < 1
    main(["compare", str(tmp_path)])
    assert (
        "compared over the frames that all runs have; the shortest: lstm" in capsys.readouterr().out
    )


@pytest.mark.parametrize("anneal", [True, False])
def test_a_note_says_if_runs_that_are_cut_are_annealed(tmp_path, capsys, anneal):
    write_run(tmp_path, CUSTOM, "splagger", learning(9.0), anneal=anneal)
    write_run(tmp_path, CUSTOM, "lstm", lambda *key: learning(9.0)(*key)[:20], anneal=anneal)
    main(["compare", str(tmp_path)])
    assert ("learning rates are annealed" in capsys.readouterr().out) == anneal


def test_runs_with_other_evaluation_intervals_end_at_an_evaluation_that_both_have(tmp_path, capsys):
    custom(tmp_path, "splagger", 9.0)  # evaluated at 0, Δ, 2Δ, …
    longer = custom(tmp_path, "rnn", 9.0)
    path = longer / "curves.csv"
    table = pandas.read_csv(path)
    table["frames"] = table["frames"] * 3 / 2  # at 0, 1.5Δ, 3Δ, …
    table.astype({"frames": int}).to_csv(path, index=False)
    found = by_method(splagger.compare(tmp_path))
    assert found["frames"].nunique() == 1
    main(["compare", str(tmp_path)])
    assert "the shortest: splagger\n" in capsys.readouterr().out


def test_a_task_without_the_reference_has_no_probability(tmp_path, capsys):
    custom(tmp_path, "rnn", 4.0)
    write_run(tmp_path, "other", "cnp", learning(3.0))
    found = by_method(splagger.compare(tmp_path, reference="rnn"))
    assert found.loc["cnp", "reference"] == "" and found.loc["cnp", "probability"] is None
    assert set(splagger.compare(tmp_path, reference="splagger-nornn-avg")["reference"]) == {
        "",
        "cnp",
    }
    main(["compare", str(tmp_path), "--reference", "rnn"])
    assert "better than cnp" not in capsys.readouterr().out


@pytest.mark.parametrize("diverges", [False, True])
def test_how_often_an_agent_is_evaluated_changes_nothing(diverges):
    frames = np.arange(0.0, 3100, 100)
    returns = {(1e-3, seed): np.sqrt(frames) + seed for seed in range(3)}
    if diverges:
        returns[1e-3, 1][11:] = np.nan
    often = Members(frames, returns)
    rarely = Members(frames[::10], {key: row[::10] for key, row in returns.items()})
    found = often.sampled(rarely.frames)
    np.testing.assert_array_equal(found.curves(1e-3), rarely.curves(1e-3))
    between = often.sampled(np.array([0.0, 150.0]))
    np.testing.assert_allclose(between.returns[1e-3, 0], [0, (np.sqrt(100) + np.sqrt(200)) / 2])


def test_one_seed_has_neither_an_interval_nor_a_probability(tmp_path, capsys):
    for method, end in (("splagger", 9.0), ("rnn", 4.0)):
        write_run(tmp_path, CUSTOM, method, learning(end), seeds=(0,))
    found = splagger.compare(tmp_path)
    assert found[["training_low", "end_high", "probability"]].isna().all(axis=None)
    main(["compare", str(tmp_path)])
    assert "[" not in capsys.readouterr().out


def test_the_command_prints_and_writes(tmp_path, capsys):
    custom(tmp_path, "rnn", 4.0)
    custom(tmp_path, "splagger", 9.0)
    main(["compare", str(tmp_path), "--csv", str(tmp_path / "table.csv")])
    printed = capsys.readouterr().out
    assert "P(better than splagger)" in printed and CUSTOM in printed
    with open(tmp_path / "table.csv") as handle:
        assert [row["method"] for row in csv.DictReader(handle)] == ["splagger", "rnn"]


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(RunError, match="no run folder in"):
        splagger.compare(tmp_path)


def test_agents_that_diverged_are_counted_and_named(tmp_path, capsys):
    """They count with their return before training; a reader must be able to see that they do."""

    def curve(rate, seed):
        return np.where(np.arange(41) < (20 if seed < 2 else 41), learning(9.0)(rate, seed), np.nan)

    custom(tmp_path, "splagger", 9.0)
    write_run(tmp_path, CUSTOM, "rnn", curve)
    found = by_method(splagger.compare(tmp_path))
    assert found["diverged"].to_dict() == {"splagger": 0, "rnn": 2}
    main(["compare", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "3 (one rate, 2 diverged)" in printed
    assert "agents that diverged count with their return before training" in printed


def test_a_run_that_diverged_at_once_ends_where_it_was_planned_to_end(tmp_path):
    """Runs are rounded up to whole evaluation intervals: 110,000 frames are 20 updates of 6,400."""
    ppo = {"steps": 400, "envs": 16, "eval_interval": 5}
    whole = write_run(tmp_path, CUSTOM, "splagger", learning(9.0))
    failed = write_run(tmp_path, CUSTOM, "rnn", lambda rate, seed: np.array([2.0, np.nan]))
    for folder in (whole, failed):
        record = json.loads((folder / "run.json").read_text())
        record["run"]["ppo"] |= ppo
        record["arguments"]["frames"], record["frames"] = 110_000, 32_000
        (folder / "run.json").write_text(json.dumps(record))
        curves = pandas.read_csv(folder / "curves.csv")
        curves["frames"] = curves["update"] * 32_000
        curves[curves["update"] <= 4].to_csv(folder / "curves.csv", index=False)
    found = splagger.compare(tmp_path)
    assert set(found["frames"]) == {128_000} and set(found["trained_frames"]) == {128_000}


def test_seeds_trained_twice_with_other_results_are_named(tmp_path, capsys):
    custom(tmp_path, "rnn", 9.0, name="old", seeds=range(8), started="2026-01")
    custom(tmp_path, "rnn", 4.0, name="new", seeds=range(6, 10), started="2026-02")
    (row,) = splagger.compare(tmp_path).to_dict("records")
    assert row["seeds"] == 10 and "2 agents trained twice with other results" in row["notes"]
    main(["compare", str(tmp_path)])
    assert "rnn env.max_steps=9: 2 agents trained twice" in capsys.readouterr().out
    (tmp_path / CUSTOM / "rnn/new/curves.csv").unlink()
    custom(tmp_path, "rnn", 9.0, name="same", seeds=range(6, 10), started="2026-03")
    assert splagger.compare(tmp_path)["notes"].tolist() == [""]


def test_frames_beyond_those_that_pooled_runs_share_are_not_hidden(tmp_path):
    short = lambda rate, seed: learning(9.0)(rate, seed)[:38]  # noqa: E731
    custom(tmp_path, "rnn", 9.0)
    changes = {"overrides": {"env.max_steps": 9}, "seeds": (10,), "name": "short"}
    write_run(tmp_path, CUSTOM, "rnn", short, **changes)
    (row,) = splagger.compare(tmp_path).to_dict("records")
    assert (row["frames"], row["trained_frames"]) == (37_000, 40_000)


def test_runs_that_do_not_count_are_named(tmp_path, capsys):
    few = lambda rate, seed: learning(9.0)(rate, seed)[:30]  # noqa: E731
    changes = {"overrides": {"env.max_steps": 9}, "finished": False}
    write_run(tmp_path, CUSTOM, "rnn", few, name="nearly", started="2026-01", **changes)
    start = lambda rate, seed: learning(9.0)(rate, seed)[:3]  # noqa: E731
    write_run(tmp_path, CUSTOM, "rnn", start, name="begun", started="2026-02", seeds=(7,), **changes)  # fmt: skip
    (row,) = splagger.compare(tmp_path).to_dict("records")
    assert (row["frames"], row["seeds"]) == (29_000, 3)
    assert row["notes"] == "without begun (unfinished, 2,000 frames)"
    custom(tmp_path, "rnn", 9.0, name="ended")
    main(["compare", str(tmp_path)])
    left_out = "without nearly (unfinished, 29,000 frames), begun (unfinished, 2,000 frames)"
    assert f"{CUSTOM}, rnn env.max_steps=9: {left_out}" in capsys.readouterr().out


def test_a_method_of_a_module_may_be_called_by_its_own_name(tmp_path):
    custom(tmp_path, "splagger", 9.0)
    folder = custom(tmp_path, "mine", 4.0)
    record = json.loads((folder / "run.json").read_text())
    record["arguments"]["method"] = "my_module:mine"
    (folder / "run.json").write_text(json.dumps(record))
    for name in ("mine", "my_module:mine"):
        assert set(splagger.compare(tmp_path, reference=name)["reference"]) == {"my_module:mine"}


@pytest.mark.parametrize("evaluations, kept", [(2, False), (20, True)])
def test_an_unfinished_run_counts_from_a_tenth_of_the_frames_on(tmp_path, evaluations, kept):
    custom(tmp_path, "splagger", 9.0)
    begun = lambda rate, seed: learning(4.0)(rate, seed)[:evaluations]  # noqa: E731
    skip = {"overrides": {"method.skip": 1}, "clip": 0.3, "finished": False}
    write_run(tmp_path, CUSTOM, "splagger", begun, name="skip", **skip)
    found = splagger.compare(tmp_path)
    assert len(found) == 1 + kept
    assert found.loc[0, "frames"] == (19_000 if kept else 40_000)
    name = "splagger method.skip=1 on gym:Custom-v0 (unfinished, 1,000 frames)"
    assert found.attrs["left_out"] == ("" if kept else f"not compared: {name}")


def test_only_runs_of_the_same_task_are_named_as_the_shortest(tmp_path, capsys):
    short = lambda rate, seed: learning(8.0)(rate, seed)[:38]  # noqa: E731
    custom(tmp_path, "splagger", 9.0)
    write_run(tmp_path, CUSTOM, "rnn", short)
    for method in ("lstm", "amrl"):  # equally long, and not cut
        write_run(tmp_path, CUSTOM, method, short, episodes=2)
    main(["compare", str(tmp_path)])
    assert "all runs have; the shortest: rnn\n" in capsys.readouterr().out


def test_a_short_sweep_chooses_the_rate_as_on_the_leaderboard(tmp_path):
    """Its seeds are not fresh, also in longer runs at that rate."""
    short = lambda rate, seed: learning(9 if rate == 3e-3 else 4)(rate, seed)[:21]  # noqa: E731
    write_run(tmp_path, "t-ls", "rnn", short, rates=(1e-3, 3e-3), name="pilot")
    write_run(tmp_path, "t-ls", "rnn", learning(9), seeds=range(5), rates=(3e-3,), name="long")
    (row,) = splagger.compare(tmp_path).to_dict("records")
    assert (row["rate"], row["seeds"], row["source"]) == (3e-3, 2, "fresh")
    assert row["notes"] == "the rate is that of pilot (only 750,000 frames)"
    evidence = Evidence.read(tmp_path)
    assert evidence.unbiased(Series("t-ls", "rnn")).seeds == "2 (fresh)"


def test_several_methods_of_one_name_are_no_reference(tmp_path):
    for module, clip in (("a", 0.1), ("b", 0.2)):
        folder = write_run(tmp_path, CUSTOM, "mine", learning(9), name=module, clip=clip)
        record = json.loads((folder / "run.json").read_text())
        record["arguments"]["method"] = f"{module}:mine"
        (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match="several methods are called 'mine': a:mine, b:mine"):
        splagger.compare(tmp_path, reference="mine")
    assert splagger.compare(tmp_path, reference="b:mine")["reference"].tolist() == ["b:mine"] * 2


def test_the_compact_network_is_named_beside_a_varied_part_of_it(tmp_path):
    """Each row shows the varied setting alone, whether it is a part of the compact network or not."""
    for index, hidden in enumerate(((32, 32), (64, 64))):
        settings = {"overrides": COMPACT | {"network.hidden": hidden}, "clip": 0.1 + index / 10}
        folder = write_run(tmp_path, CUSTOM, "rnn", learning(9), name=f"h{hidden[0]}", **settings)
        record = json.loads((folder / "run.json").read_text())
        record["run"]["network"]["hidden"] = hidden
        (folder / "run.json").write_text(json.dumps(record))
    found = splagger.compare(tmp_path)["settings"].tolist()
    assert sorted(found) == ["network.hidden=32,32", "network.hidden=64,64"]
    column = [row[2] for row in status_table(overview(tmp_path).rows).rows]
    assert sorted(column) == ["network.hidden=32,32", "network.hidden=64,64"]


def test_results_of_train_and_lists_are_places_of_runs(tmp_path):
    custom(tmp_path, "splagger", 9.0)
    folder = custom(tmp_path, "rnn", 4.0)
    result = pandas.DataFrame()
    result.attrs["folder"] = folder
    assert list(splagger.compare(result)["method"]) == ["rnn"]
    assert set(splagger.compare([tmp_path, result])["method"]) == {"splagger", "rnn"}
    with pytest.raises(RunError, match=r"result of splagger\.train, got int"):
        splagger.compare(3)
