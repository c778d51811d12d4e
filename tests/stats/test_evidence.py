"""Which curves represent a method: the right rate, the right seeds, and no other experiment."""

import json
import shutil

import numpy as np
import pytest

from splagger.errors import RunError
from splagger.runs.analyses import AnalysisKey
from splagger.runs.folder import RunFolder
from splagger.stats import selection
from splagger.stats.evidence import Evidence, Series
from splagger.stats.members import Members, best_rate, members_of, pool, trained_twice
from tests.synthetic import EVALUATIONS, frames_between, learning, write_analysis, write_run

RATES = (3e-3, 1e-3, 3e-4)
T_LS = Series("t-ls", "rnn")


def by_rate(finals, **options):
    """Returns curves whose final value depends on the rate."""
    return lambda rate, seed: learning(finals[rate], **options)(rate, seed)


def stopping(curve, seeds, after):
    """Returns the curve, but `seeds` diverge after some evaluations."""

    def diverging(rate, seed):
        values = curve(rate, seed)
        late = np.arange(len(values)) >= after
        return np.where(late & (seed in seeds), np.nan, values)

    return diverging


def rate_of(folder):
    (members,) = members_of(RunFolder(folder), RunFolder(folder).record()).values()
    return best_rate(members)


def test_the_best_rate_has_the_highest_mean_over_training_not_the_highest_end(tmp_path):
    def curve(rate, seed):
        quick, slow = learning(10, speed=30)(rate, seed), learning(20, speed=1)(rate, seed)
        assert slow[-1] > quick[-1] and slow.mean() < quick.mean()
        return quick if rate == 1e-3 else slow

    assert rate_of(write_run(tmp_path, "t-ls", "rnn", curve, rates=RATES)) == 1e-3


def test_a_rate_at_which_an_agent_diverged_is_chosen_only_if_there_is_no_other(tmp_path):
    finals = {3e-3: 16, 1e-3: 8, 3e-4: 4}
    curve = by_rate(finals)
    some = lambda rate, seed: stopping(curve, [1] if rate == 3e-3 else [], 5)(rate, seed)  # noqa: E731
    assert rate_of(write_run(tmp_path / "some", "t-ls", "rnn", some, rates=RATES)) == 1e-3
    everywhere = stopping(curve, [1], 5)
    assert rate_of(write_run(tmp_path / "all", "t-ls", "rnn", everywhere, rates=RATES)) == 3e-3
    # A rate at once, which then counts as untrained, and the others later: that which lasted, not the highest.
    once = lambda rate, seed: stopping(curve, [0, 1, 2], 1 if rate == 3e-3 else 5)(rate, seed)  # noqa: E731
    high = lambda rate, seed: once(rate, seed) + 50 * (rate == 3e-3)  # noqa: E731
    assert rate_of(write_run(tmp_path / "once", "t-ls", "rnn", high, rates=RATES)) == 1e-3


def test_a_rate_with_fewer_seeds_is_chosen_only_if_there_is_no_other(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", by_rate({1e-3: 8, 3e-4: 4}), rates=(1e-3, 3e-4))
    few = dict(rates=(3e-3, 3e-4), seeds=(7,), name="few")
    write_run(tmp_path, "t-ls", "rnn", by_rate({3e-3: 16, 3e-4: 4, 1e-3: 0}), **few)
    assert Evidence.read(tmp_path).as_in_paper(T_LS).rate == 3e-4
    assert Evidence.read(tmp_path).unbiased(T_LS).curves.shape == (4, EVALUATIONS)


def test_a_diverged_agent_counts_as_untrained_from_there(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", stopping(learning(16, start=2.0), [2], 7))
    chosen = Evidence.read(tmp_path).as_in_paper(T_LS)
    assert chosen.curves.shape == (3, EVALUATIONS)
    assert (chosen.curves[2, 7:] == 2.0).all()
    assert chosen.curves[0, -1] > 15 and np.isfinite(chosen.curves).all()


def test_a_run_in_which_every_agent_diverged_counts_as_untrained_to_its_end(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", stopping(learning(16, start=2.0), [0, 1, 2], 7))
    chosen = Evidence.read(tmp_path).as_in_paper(T_LS)
    assert chosen.curves.shape == (3, EVALUATIONS) and (chosen.curves[:, 7:] == 2.0).all()
    assert chosen.frames.tolist() == [
        frames_between("t-ls") * update for update in range(EVALUATIONS)
    ]


def test_a_run_that_failed_in_its_first_block_counts_as_untrained_to_its_end(tmp_path):
    first = stopping(learning(16, start=2.0), [0, 1, 2], 1)
    write_run(tmp_path, "t-ls", "rnn", first, reached=frames_between("t-ls"))
    chosen = Evidence.read(tmp_path).as_in_paper(T_LS)
    assert chosen.curves.shape == (3, EVALUATIONS) and (chosen.curves == 2.0).all()


def test_fresh_seeds_are_wanted_at_the_rate_at_which_they_will_be_reported(tmp_path):
    """Four seeds are halved for the report, and each half may prefer another rate than all of them."""

    def curve(rate, seed):
        finals = {3e-3: (9, 4, 9, 4), 1e-3: (8, 8, 8, 8)}
        return learning(finals[rate][seed % 4])(rate, seed)

    sweep = dict(rates=(3e-3, 1e-3), seeds=range(4))
    write_run(tmp_path, "t-ls", "rnn", curve, **sweep)
    read = Evidence.read(tmp_path)
    assert read.unbiased(T_LS).rate == 3e-3 and read.unbiased(T_LS).source == selection.HELD_OUT
    assert read.best_rate(T_LS) == 1e-3
    fresh = dict(rates=(read.best_rate(T_LS),), seeds=range(100, 110), name="fresh")
    write_run(tmp_path, "t-ls", "rnn", curve, **fresh)
    assert Evidence.read(tmp_path).unbiased(T_LS).source == selection.FRESH


def test_other_episodes_are_another_experiment_also_outside_of_the_paper(tmp_path):
    series = Series("dark-room", "rnn")
    write_run(tmp_path, *series.name, learning(40.0), episodes=8)
    other = dict(episodes=2, name="short tasks", started="2026-02-01T00:00:00Z")
    write_run(tmp_path, *series.name, learning(10.0), **other)
    assert Evidence.read(tmp_path).unbiased(series).curves.max() > 30


def test_a_single_seed_is_reported_on_itself(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(16), rates=RATES, seeds=(5,))
    read = Evidence.read(tmp_path)
    assert (
        read.as_in_paper(T_LS).curves.shape == read.unbiased(T_LS).curves.shape == (1, EVALUATIONS)
    )
    assert read.unbiased(T_LS).source == selection.SAME


def test_three_seeds_are_reported_on_themselves_with_that_source(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", by_rate({3e-3: 4, 1e-3: 9, 3e-4: 2}), rates=RATES)
    read = Evidence.read(tmp_path)
    assert read.unbiased(T_LS).source == read.as_in_paper(T_LS).source == selection.SAME
    assert read.unbiased(T_LS).rate == 1e-3


def test_four_seeds_are_halved_to_avoid_selection_bias(tmp_path):
    """All rates are equally good; seeds 0 and 2 happen to earn more at 3e-3, seeds 1 and 3 do not."""
    curve = lambda rate, seed: np.full(9, 10.0 if rate == 3e-3 and seed % 2 == 0 else 5.0)  # noqa: E731
    write_run(tmp_path, "t-ls", "rnn", curve, rates=RATES, seeds=(0, 1, 2, 3))
    read = Evidence.read(tmp_path)
    assert read.as_in_paper(T_LS).curves.mean() == 7.5
    chosen = read.unbiased(T_LS)
    assert (chosen.rate, chosen.source) == (3e-3, selection.HELD_OUT)
    assert chosen.curves.shape == (2, 9) and chosen.curves.mean() == 5.0


def test_fresh_seeds_at_the_chosen_rate_are_reported_instead(tmp_path):
    finals = {3e-3: 4, 1e-3: 9, 3e-4: 2}
    write_run(tmp_path, "t-ls", "rnn", by_rate(finals), rates=RATES)
    fresh = dict(rates=(1e-3,), seeds=range(10, 20), name="fresh")
    write_run(tmp_path, "t-ls", "rnn", learning(8), **fresh)
    read = Evidence.read(tmp_path)
    chosen = read.unbiased(T_LS)
    assert (chosen.rate, chosen.source, len(chosen.curves)) == (1e-3, selection.FRESH, 10)
    assert chosen.curves[:, -1] == pytest.approx(np.full(10, 8), abs=0.1)
    assert len(read.as_in_paper(T_LS).curves) == 3 and read.as_in_paper(T_LS).curves[0, -1] > 8.5
    assert read.for_figures(T_LS).source == selection.FRESH


def test_fresh_seeds_never_take_part_in_the_choice(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", by_rate({3e-3: 4, 1e-3: 9, 3e-4: 2}), rates=RATES)
    better = dict(rates=(3e-3,), seeds=range(10, 20), name="fresh")
    write_run(tmp_path, "t-ls", "rnn", learning(16), **better)
    chosen = Evidence.read(tmp_path).unbiased(T_LS)
    assert (chosen.rate, chosen.source) == (1e-3, selection.SAME)


def shorter(curve, evaluations=4):
    return lambda rate, seed: curve(rate, seed)[:evaluations]


def test_a_short_sweep_chooses_the_rate_of_longer_runs_on_fresh_seeds(tmp_path):
    pilot = shorter(by_rate({3e-3: 4, 1e-3: 9, 3e-4: 2}))
    write_run(tmp_path, "t-ls", "rnn", pilot, rates=RATES, seeds=(0,), name="pilot")
    write_run(tmp_path, "t-ls", "rnn", learning(8), rates=(1e-3,), seeds=(0, 10, 11), name="long")
    other = dict(
        rates=(3e-3,), seeds=(10, 11), name="other"
    )  # a rate that the sweep did not choose
    write_run(tmp_path, "t-ls", "rnn", learning(16), **other)
    read = Evidence.read(tmp_path)
    # Seeds 10 and 11 were now trained at two rates, which makes them a sweep of their own.
    assert read.unbiased(T_LS).source == selection.SAME
    assert {run.path.name for run in read.runs if read.counts(run)} == {"long", "other"}
    shutil.rmtree(tmp_path / "t-ls/rnn/other")
    read = Evidence.read(tmp_path)
    chosen = read.unbiased(T_LS)
    assert (chosen.rate, chosen.source) == (1e-3, selection.FRESH)
    assert chosen.curves.shape == (2, EVALUATIONS)  # seed 0 took part in the choice
    assert read.for_figures(T_LS).source == selection.FRESH
    assert all(read.counts(run) for run in read.runs)


def test_longer_runs_at_another_rate_than_the_short_sweep_chose_are_one_rate(tmp_path):
    pilot = shorter(by_rate({3e-3: 4, 1e-3: 9, 3e-4: 2}))
    write_run(tmp_path, "t-ls", "rnn", pilot, rates=RATES, seeds=(0,), name="pilot")
    write_run(tmp_path, "t-ls", "rnn", learning(8), rates=(3e-4,), seeds=(10, 11), name="long")
    chosen = Evidence.read(tmp_path).unbiased(T_LS)
    assert (chosen.rate, chosen.source) == (3e-4, selection.ONE_RATE)


def test_a_short_sweep_of_other_settings_chooses_nothing(tmp_path):
    pilot = shorter(by_rate({3e-3: 4, 1e-3: 9, 3e-4: 2}))
    write_run(tmp_path, "t-ls", "rnn", pilot, rates=RATES, seeds=(0,), name="pilot", clip=0.2)
    write_run(tmp_path, "t-ls", "rnn", learning(8), rates=(1e-3,), seeds=(10, 11), name="long")
    assert Evidence.read(tmp_path).unbiased(T_LS).source == selection.ONE_RATE


def test_seeds_of_the_sweep_are_not_fresh(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9), rates=RATES)
    write_run(tmp_path, "t-ls", "rnn", learning(9), rates=RATES[:1], seeds=range(10), name="ten")
    assert len(Evidence.read(tmp_path).unbiased(T_LS).curves) == 7


def test_with_one_rate_nothing_is_chosen(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9), seeds=range(6))
    chosen = Evidence.read(tmp_path).unbiased(T_LS)
    assert chosen.source == selection.ONE_RATE and len(chosen.curves) == 6


def test_a_sweep_in_several_folders_is_one_sweep(tmp_path):
    for rate, final in ((3e-3, 4), (1e-3, 9)):
        write_run(tmp_path, "t-ls", "rnn", learning(final), rates=(rate,), name=str(rate))
    chosen = Evidence.read(tmp_path).as_in_paper(T_LS)
    assert chosen.rate == 1e-3 and len(chosen.curves) == 3


def cut(curve, evaluations):
    return lambda rate, seed: curve(rate, seed)[:evaluations]


def test_runs_of_similar_length_are_pooled_at_their_shared_frames(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9), seeds=(0, 1))
    write_run(tmp_path, "t-ls", "rnn", cut(learning(9), 38), seeds=(2,), name="shorter")
    assert Evidence.read(tmp_path).as_in_paper(T_LS).curves.shape == (3, 38)


def test_a_race_does_not_replace_the_whole_curve_of_an_agent_that_it_stopped():
    """Both runs trained the same agents; the race stopped one rate, in whichever order they were made."""
    frames = np.arange(1, 11) * 100.0
    whole = {(rate, seed): rate * frames + seed for rate in (1e-2, 1e-3) for seed in range(2)}
    stopped = {k: np.where((k[0] == 1e-2) | (frames < 300), v, np.nan) for k, v in whole.items()}
    full, race = Members(frames, whole), Members(frames, stopped)
    for parts in ([full, race], [race, full]):
        assert trained_twice(parts) == 0
        for key, row in pool(parts).returns.items():
            np.testing.assert_array_equal(row, whole[key])
    other = Members(frames, {k: v + 1 for k, v in stopped.items()})
    assert trained_twice([full, other]) == 4
    assert np.isnan(pool([full, other]).returns[1e-3, 0]).sum() == 8  # newer results replace others


def test_a_short_trial_beside_a_complete_run_does_not_count(tmp_path):
    write_run(
        tmp_path, "t-ls", "rnn", cut(learning(9), 20), seeds=(2,), name="trial", started="2027"
    )
    assert Evidence.read(tmp_path).lacks(T_LS)
    chosen = Evidence.read(tmp_path).as_in_paper(T_LS)
    assert chosen.curves.shape == (1, 20)  # there is nothing else to draw
    write_run(tmp_path, "t-ls", "rnn", learning(9), seeds=(0, 1))
    found = Evidence.read(tmp_path)
    assert found.as_in_paper(T_LS).curves.shape == (2, EVALUATIONS) and not found.lacks(T_LS)


def test_settings_at_which_every_agent_diverged_keep_their_length(tmp_path):
    """Agents with KL weight 1 diverge early; the others continue."""
    for weight, curve in (
        (1.0, stopping(learning(16, start=2.0), [0, 1, 2], 7)),
        (0.0, learning(9)),
    ):
        write_run(tmp_path, "t-ls", "pearl", curve, kl_weights=(weight,), name=f"{weight}")
    folder = tmp_path / "t-ls" / "pearl"
    lines = [(folder / name / "curves.csv").read_text().splitlines() for name in ("1.0", "0.0")]
    (folder / "0.0" / "curves.csv").write_text("\n".join([*lines[0], *lines[1][1:]]))
    found = members_of(RunFolder(folder / "0.0"), RunFolder(folder / "0.0").record())
    assert len(found) == 2
    for members in found.values():
        assert members.curves(1e-3).shape == (3, EVALUATIONS)


def test_an_unfinished_run_counts_only_if_there_is_no_finished_one(tmp_path):
    few = lambda rate, seed: np.array([1.0, 2.0])  # noqa: E731
    write_run(tmp_path, "t-ls", "rnn", few, finished=False, name="unfinished", started="2027")
    assert Evidence.read(tmp_path).as_in_paper(T_LS).curves.shape == (3, 2)
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    assert Evidence.read(tmp_path).as_in_paper(T_LS).curves.shape == (3, EVALUATIONS)


@pytest.mark.parametrize(
    "change", [{"overrides": {"env.length": 20}}, {"clip": 0.2}, {"episodes": 2, "started": "2027"}]
)
def test_runs_with_other_settings_are_other_experiments(tmp_path, change):
    write_run(tmp_path, "t-ls", "rnn", learning(9), started="2026-02")
    write_run(tmp_path, "t-ls", "rnn", learning(16), seeds=(7,), name="other", **change)
    found = Evidence.read(tmp_path)
    assert len(found.as_in_paper(T_LS).curves) == 3 and found.as_in_paper(T_LS).curves.max() < 9.5
    assert {run.path.name: found.counts(run) for run in found.runs} == {"run": True, "other": False}


def test_a_run_recorded_with_one_more_setting_is_the_same_experiment(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    newer = write_run(tmp_path, "t-ls", "rnn", learning(9), seeds=(7,), name="newer")
    record = json.loads((newer / "run.json").read_text())
    record["run"]["ppo"]["new"] = 1
    (newer / "run.json").write_text(json.dumps(record))
    assert len(Evidence.read(tmp_path).as_in_paper(T_LS).curves) == 4


def test_swept_settings_are_separate_series_and_the_default_one_is_the_run_setting(tmp_path):
    for weight in (1.0, 1e-6):
        given = dict(kl_weights=(weight,), name=f"{weight}")
        write_run(tmp_path, "t-ls", "pearl", learning(16 if weight < 1 else 3), **given)
    read = Evidence.read(tmp_path)
    assert read.as_in_paper(Series("t-ls", "pearl")).curves.max() > 15
    assert read.as_in_paper(Series.create("t-ls", "pearl", kl_weight=1e-6)).curves.max() > 15
    assert read.as_in_paper(Series.create("t-ls", "pearl", kl_weight=1)).curves.max() < 4
    assert read.as_in_paper(Series.create("t-ls", "pearl", kl_weight=0)) is None


def test_series_without_runs_are_none(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    read = Evidence.read(tmp_path)
    for series in (Series("t-ls", "amrl"), Series("walker", "rnn")):
        assert read.as_in_paper(series) is read.unbiased(series) is read.for_figures(series) is None
    assert read.analysis(AnalysisKey("permutation", "initialization"), "rnn") is None
    assert Evidence.read(tmp_path / "nowhere").runs == []


def test_a_run_before_its_first_evaluation_is_not_evidence(tmp_path):
    folder = write_run(tmp_path, "t-ls", "rnn", learning(9))
    for content in (None, ""):
        (folder / "curves.csv").unlink(missing_ok=True)
        if content is not None:
            (folder / "curves.csv").write_text(content)
        assert Evidence.read(tmp_path).as_in_paper(T_LS) is None


@pytest.mark.parametrize("text", ["frames,rate\n1,2\n", "x" * 50, "a,b\nc\nd,e,f\n"])
def test_damaged_curves_raise_an_error_that_names_the_file(tmp_path, text):
    folder = write_run(tmp_path, "t-ls", "rnn", learning(9))
    (folder / "curves.csv").write_text(text)
    with pytest.raises(RunError, match=r"run/curves\.csv is damaged"):
        Evidence.read(tmp_path)


def test_a_record_without_arguments_is_refused(tmp_path):
    folder = write_run(tmp_path, "t-ls", "rnn", learning(9))
    (folder / "run.json").write_text('{"run": {}}')
    with pytest.raises(RunError, match="another version"):
        Evidence.read(tmp_path)


def test_a_folder_given_twice_is_read_once(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    assert len(Evidence.read(tmp_path, tmp_path / "t-ls").runs) == 1


def test_an_analysis_has_seeds_dimensions_and_steps(tmp_path):
    write_analysis(tmp_path, "pearl-variance", "t-ls", {"pearl": lambda t: t}, 2, 3, steps=5)
    read = Evidence.read(tmp_path, analyses=tmp_path)
    key = AnalysisKey("pearl-variance", "t-ls")
    analysis = read.analysis(key, "pearl")
    assert analysis.values.shape == (2, 3, 5) and analysis.steps.tolist() == [0, 1, 2, 3, 4]
    assert analysis.values[1, 2] == pytest.approx(1.25 * np.arange(5))
    assert read.analysis(key, "rnn") is None
    path = tmp_path / key.folder / "values.csv"
    path.rename(tmp_path / "values.csv")
    assert Evidence.read(tmp_path, analyses=tmp_path).analysis(key, "pearl") is None
    path.write_text("method,seed\nrnn,0\n")
    with pytest.raises(RunError, match="make that analysis again"):
        Evidence.read(tmp_path, analyses=tmp_path).analysis(key, "rnn")
