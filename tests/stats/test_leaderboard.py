"""The leaderboard: normalized scores, standings over tasks, and its files."""

import csv
import shutil
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes

from splagger.cli import main
from splagger.cli.leaderboard_command import Leaderboard
from splagger.errors import RunError
from splagger.plots.leaderboard import leaderboard_picture
from splagger.report.leaderboard import scores_table, tasks_table
from splagger.stats.estimates import interquartile_mean
from splagger.stats.evidence import Evidence, Series
from splagger.stats.leaderboard import THRESHOLDS, leaderboard, normalized, table
from tests.synthetic import learning, write_run

FINAL = {  # returns at the end: T-LS is scaled from 2 to 16, the endless maze from 4 to 32
    ("t-ls", "splagger"): 16.0,
    ("t-ls", "rnn"): 2.0,
    ("t-endless", "splagger"): 18.0,
    ("t-endless", "rnn"): 32.0,
    ("t-endless", "lstm"): 4.0,
}


def steps_up(final, at, start):
    """Returns a curve that is `start` before the fraction `at` of training, and `final` from then on."""

    def curve(rate, seed, steps=41):
        return np.where(np.arange(steps) < at * (steps - 1), start, final) + 0.01 * (seed - 2)

    return curve


@pytest.fixture
def runs(tmp_path):
    for (env, method), final in FINAL.items():
        start = 2.0 if env == "t-ls" else 4.0
        write_run(tmp_path, env, method, steps_up(final, 0.5, start), seeds=range(5))
    return tmp_path


def test_scores_are_0_for_the_random_and_1_for_the_reference_policy():
    np.testing.assert_allclose(normalized("t-endless", np.array([4.0, 18.0, 32.0])), [0, 0.5, 1])


def test_standings_are_over_the_tasks_that_all_methods_have(runs):
    board = leaderboard(runs, methods=("splagger", "rnn"))
    assert set(board.envs) == {"t-ls", "t-endless"}
    scores = {one.method: one for one in board.standings}
    cells = {(cell.env, cell.method): cell for cell in board.cells}
    for method, one in scores.items():
        pooled = np.concatenate([cells[env, method].end for env in board.envs])
        assert one.end.value == pytest.approx(float(interquartile_mean(np.repeat(pooled, 4))))
        assert one.end.low <= one.end.value <= one.end.high
        np.testing.assert_allclose(one.profile, [(pooled > t).mean() for t in THRESHOLDS])
    # SplAgger wins one task and loses the other.
    assert scores["rnn"].improvement.value == pytest.approx(0.5)
    assert scores["splagger"].improvement is None
    assert scores["splagger"].solved == scores["rnn"].solved == 0.5
    assert [one.method for one in board.standings] == ["splagger", "rnn"]


def test_tasks_weigh_the_same_however_many_seeds_they_have(runs):
    """Ninety more seeds at the same rate on one task leave all numbers of the standings where they were, but the intervals."""
    before = leaderboard(runs, methods=("splagger", "rnn"))
    for method in ("splagger", "rnn"):
        curve = steps_up(FINAL["t-ls", method], 0.5, 2.0)
        repeated = lambda rate, seed, curve=curve: curve(rate, seed % 5)  # noqa: E731
        write_run(runs, "t-ls", method, repeated, seeds=range(5, 95), name="more")
    after = leaderboard(runs, methods=("splagger", "rnn"))
    assert {len(cell.end) for cell in after.cells if cell.env == "t-ls"} == {95}
    for old, new in zip(before.standings, after.standings, strict=True):
        assert old.method == new.method and old.solved == pytest.approx(new.solved)
        assert old.end.value == pytest.approx(new.end.value)
        np.testing.assert_allclose(old.profile, new.profile)


def test_a_method_that_lacks_a_task_narrows_the_standings(runs):
    board = leaderboard(runs)
    assert board.envs == ["t-endless"]
    assert [one.method for one in board.standings] == ["rnn", "splagger", "lstm"]
    assert len(board.cells) == len(FINAL)


def test_the_table_of_scores_has_every_cell_and_a_dash_where_there_is_none(runs):
    found = scores_table(leaderboard(runs))
    place = {env: 1 + i for i, env in enumerate(found.head[1:])}
    cells = {row[0]: (row[place["t-ls"]], row[place["t-endless"]]) for row in found.rows}
    assert cells == {"SplAgger": ("1.00", "0.50"), "RNN": ("0.00", "1.00"), "LSTM": ("–", "0.00")}


def test_frames_to_reach_a_score_are_those_of_the_smoothed_curve(runs):
    frame = table(leaderboard(runs)).set_index(["env", "method"])
    reached = frame["frames_to_reach"]
    total = frame.loc[("t-ls", "splagger"), "frames"]
    assert 0.5 * total < reached["t-ls", "splagger"] <= 0.65 * total
    assert reached["t-ls", "rnn"] == reached["t-endless", "splagger"] == np.inf
    assert frame.loc[("t-ls", "rnn"), "frames_per_second"] == 3200


def test_the_page_and_the_numbers_agree_on_the_frames_to_a_score(tmp_path):
    """With an even number of seeds, both show the seed in the upper middle."""
    curve = lambda rate, seed: steps_up(16.0, 0.2 + 0.1 * seed, 2.0)(rate, seed)  # noqa: E731
    write_run(tmp_path, "t-ls", "splagger", curve, seeds=range(4))
    board = leaderboard(tmp_path)
    (cell,) = board.cells
    reached = table(board).set_index("env").loc["t-ls", "frames_to_reach"]
    assert reached in cell.reached
    assert tasks_table(board).rows[0][6] == f"{reached:,.0f}"


def test_longer_runs_are_compared_over_the_frames_that_all_have(runs):
    longer = lambda rate, seed: np.append(steps_up(2.0, 0.5, 2.0)(rate, seed), [16.0] * 40)  # noqa: E731
    write_run(runs, "t-ls", "cnp", longer, seeds=range(5))
    cells = {c.method: c for c in leaderboard(runs, envs=("t-ls",)).cells}
    assert len({cell.chosen.frames[-1] for cell in cells.values()}) == 1
    assert cells["cnp"].end.max() < 0.1  # it learns later only


def test_tasks_without_a_scale_do_not_count(runs):
    write_run(runs, "walker", "splagger", learning(5.0))
    assert "walker" not in {cell.env for cell in leaderboard(runs).cells}


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"methods": ("lstm", "rnn"), "envs": ("t-ls",)}, "no run of lstm on a task"),
        ({"methods": ("cnp",)}, "no run to rank: no run of these methods with the registered"),
    ],
)
def test_nothing_to_compare_is_one_line(runs, chosen, message):
    with pytest.raises(RunError, match=message):
        leaderboard(runs, **chosen)


def test_a_reference_without_a_run_is_refused_unless_it_is_the_default(runs):
    with pytest.raises(RunError, match="no run of 'tpyo'; there are lstm, rnn, splagger"):
        leaderboard(runs, reference="tpyo")
    board = leaderboard(runs, methods=("rnn", "lstm"))
    assert all(one.improvement is None for one in board.standings)


def test_an_alias_stands_for_the_method_of_its_row(runs, tmp_path, capsys):
    write_run(runs, "t-ls", "splagger-nornn", learning(9.0), seeds=range(5))
    out = ["--out", str(tmp_path / "board")]
    main(["leaderboard", str(runs), "--methods", "splagger", "max", "--envs", "t-ls", *out])
    assert "SplAgger-noRNN" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fresh", "5"], "--fresh has an effect only with --train"),
        (["--rates", "1e-3"], "--rates has an effect only with --train"),
        (["--jobs", "2"], "--jobs has an effect only with --train"),
        (["--on", "slurm"], "--on has an effect only with --train"),
        (["--hours", "3"], "--hours has an effect only with --train"),
        (["--train", "--reference", "splaggr"], "--reference splaggr is not one of --methods"),
        (["--train", "--small"], "--small makes runs that a leaderboard does not rank"),
        (["--train", "--set", "ppo.clip=0.3"], "--set makes runs that a leaderboard does not rank"),
        (["--train", "--kl-weights", "0"], "--kl-weights makes runs"),
        (["--train", "--episodes", "2"], "--episodes makes runs"),
    ],
)
def test_options_without_an_effect_are_refused_at_once(runs, options, message, capsys):
    with pytest.raises(SystemExit):
        main(["leaderboard", str(runs), "--methods", "rnn", "--envs", "t-ls", *options])
    assert message in capsys.readouterr().err


def test_a_task_that_cannot_be_ranked_is_not_trained(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(
            [
                "leaderboard",
                str(tmp_path),
                "--train",
                "--methods",
                "rnn",
                "--envs",
                "gym:CartPole-v1",
            ]
        )
    assert "gym:CartPole-v1 has no known scale, so it cannot be ranked" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_page_figure_and_numbers(runs, tmp_path, capsys):
    out = tmp_path / "board"
    main(["leaderboard", str(runs), "--methods", "splagger", "rnn", "--out", str(out)])
    printed = capsys.readouterr().out
    assert "P(better than SplAgger)" in printed and "not reached" in printed
    page = (out / "leaderboard.md").read_text()
    assert "| RNN |" in page and "leaderboard.png" in page
    assert (out / "leaderboard.png").read_bytes()[:4] == b"\x89PNG"
    rows = list(csv.DictReader((out / "leaderboard.csv").read_text().splitlines()))
    assert [row["method"] for row in rows if not row["env"]] == ["splagger", "rnn"]
    assert len(rows) == 2 + 4


def test_fresh_seeds_are_trained_at_the_best_rate(tmp_path):
    def curve(rate, seed):
        return learning(16.0 if rate == 3e-3 else 4.0)(rate, seed)

    write_run(tmp_path, "t-ls", "splagger", curve, rates=(1e-3, 3e-3))
    command = Leaderboard((tmp_path,), ("splagger", "rnn"), ("t-ls",), fresh=4)
    (run,) = command.fresh_runs()  # the RNN has no run whose rate could be chosen
    assert (run.row.name, run.method.name) == ("t-ls", "splagger")
    assert run.rates == (3e-3,) and run.seeds == (100, 101, 102, 103)
    write_run(tmp_path, "t-ls", "splagger", curve, rates=(3e-3,), seeds=run.seeds, name="fresh")
    assert command.fresh_runs() == []
    (more,) = replace(command, fresh=6).fresh_runs()
    assert more.rates == (3e-3,) and more.seeds == (104, 105)


def test_fresh_seeds_follow_all_seeds_of_finished_runs(tmp_path):
    """A sweep may have seeds above 100, and an interrupted run continues with its own seeds."""
    rates = {"rates": (1e-3, 3e-3)}
    write_run(tmp_path, "t-ls", "rnn", learning(9), seeds=(100, 101, 102), **rates)
    command = Leaderboard((tmp_path,), ("rnn",), ("t-ls",), fresh=4)
    (run,) = command.fresh_runs()
    assert run.seeds == (103, 104, 105, 106)
    changes = {"rates": run.rates, "seeds": run.seeds, "name": "fresh"}
    folder = write_run(tmp_path, "t-ls", "rnn", learning(9), finished=False, **changes)
    (again,) = command.fresh_runs()
    assert again.seeds == run.seeds
    shutil.rmtree(folder)
    write_run(tmp_path, "t-ls", "rnn", learning(9), **changes | {"seeds": (107, 108)})
    (more,) = command.fresh_runs()
    assert more.seeds == (109, 110)


def test_runs_that_are_not_ranked_are_named(tmp_path, capsys):
    write_run(tmp_path, "t-ls", "splagger", learning(9))
    wide = {"overrides": {"method.width": 128}}
    write_run(tmp_path, "t-ls", "rnn", learning(9), name="wide", **wide)
    write_run(tmp_path, "t-ls", "lstm", learning(9), name="old", started="2026-01")
    write_run(tmp_path, "t-ls", "lstm", learning(4), name="new", started="2026-02", clip=0.3)
    start = lambda rate, seed: learning(9)(rate, seed)[:5]  # noqa: E731
    write_run(tmp_path, "t-ls", "lstm", start, name="begun", finished=False)
    main(["leaderboard", str(tmp_path), "--out", str(tmp_path / "board")])
    printed = capsys.readouterr().out
    for part in ("wide (method.width=128)", "old (other settings than newer runs)", "begun (unfin"):
        assert part in printed
    with pytest.raises(
        RunError, match=r"no run of rnn .*; not ranked: .*wide \(method.width=128\)"
    ):
        leaderboard(tmp_path, methods=["rnn", "lstm"])


def test_a_run_that_has_only_begun_does_not_end_the_ranking(tmp_path):
    write_run(tmp_path, "t-ls", "splagger", learning(16))
    write_run(tmp_path, "t-ls", "cnp", learning(9))
    before = leaderboard(tmp_path)
    start = lambda rate, seed: learning(9)(rate, seed)[:1]  # noqa: E731
    write_run(tmp_path, "t-ls", "rnn", start, finished=False)
    after = leaderboard(tmp_path)
    assert [s.end for s in after.standings] == [s.end for s in before.standings]
    assert "rnn/run (unfinished, 0 frames)" in after.left_out
    # Without finished runs, unfinished ones are ranked.
    write_run(tmp_path / "other", "t-ls", "rnn", learning(9), finished=False)
    assert [s.method for s in leaderboard(tmp_path / "other").standings] == ["rnn"]


def test_annealed_runs_are_ranked_with_others_of_their_length(tmp_path):
    write_run(tmp_path, "mc-ls", "splagger", learning(27), anneal=True)
    short = lambda rate, seed: learning(27)(rate, seed)[:11]  # noqa: E731
    write_run(tmp_path, "mc-ls", "rnn", short, anneal=True)
    board = leaderboard(tmp_path)
    assert [s.method for s in board.standings] == ["splagger"]
    assert "rnn/run (annealed over fewer frames than others)" in board.left_out


def test_tasks_without_a_scale_and_other_axes_are_named(tmp_path):
    write_run(tmp_path, "t-ls", "splagger", learning(9))
    write_run(tmp_path, "t-ls", "pearl", learning(9), kl_weights=(0.01,))
    write_run(tmp_path, "gym:Mine-v0", "splagger", learning(9))
    board = leaderboard(tmp_path)
    assert [s.method for s in board.standings] == ["splagger"]
    assert "gym:Mine-v0 (no known scale)" in board.left_out
    assert "pearl/run (kl_weight=0.01)" in board.left_out
    with pytest.raises(RunError, match="gym:Mine-v0 has no known scale, so it cannot be ranked"):
        leaderboard(tmp_path, envs=["gym:Mine-v0"])


def test_the_train_option_trains_and_ranks(tmp_path, capsys):
    given = ["--envs", "t-ls-small", "--methods", "memoryless", "--rates", "1e-3", "3e-3"]
    given += ["--seeds", "1", "--frames", "1", "--fresh", "1"]
    main(["leaderboard", str(tmp_path), "--train", *given, "--out", str(tmp_path / "board")])
    out = capsys.readouterr().out
    assert "1 (fresh)" in out and (tmp_path / "board" / "leaderboard.md").is_file()


def test_short_fresh_seeds_that_can_be_extended_are_trained_on(tmp_path):
    rates = {"rates": (1e-3, 3e-3)}
    write_run(tmp_path, "t-ls", "rnn", learning(9), **rates)
    short = lambda rate, seed: learning(9)(rate, seed)[:21]  # noqa: E731
    fresh = {"rates": (3e-3,), "seeds": range(100, 105), "name": "fresh"}
    for race, first in ((False, 100), (True, 105)):
        folder = write_run(tmp_path, "t-ls", "rnn", short, race=race, **fresh)
        assert Evidence.read(tmp_path).first_fresh_seed(Series("t-ls", "rnn")) == first
        shutil.rmtree(folder)


def test_tasks_without_runs_are_named(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    with pytest.raises(RunError, match="no ranked run on t-latent; there are t-ls"):
        leaderboard(tmp_path, envs=["t-ls", "t-latent"])


def test_names_of_methods_are_drawn_as_they_are(tmp_path, monkeypatch):
    """Neither as formulas nor, if they begin with "_", not at all; each has its own color."""
    names = ["splagger", "_mine", "cost$^$b", "other"]
    for name in names:
        write_run(tmp_path, "t-ls", name, learning(9))
    seen = []
    before = Axes.legend
    monkeypatch.setattr(
        Axes,
        "legend",
        lambda self, *given, **options: seen.append(given) or before(self, *given, **options),
    )
    leaderboard_picture(leaderboard(tmp_path))
    ((lines, labels),) = seen
    assert {label.replace("\\", "") for label in labels} == {"SplAgger", *names[1:]}
    assert len({line.get_color() for line in lines}) == 4


def test_the_train_option_checks_all_folders_first(tmp_path, capsys):
    write_run(tmp_path / "runs", "t-ls", "rnn", learning(9))
    with pytest.raises(SystemExit):
        main(
            [
                "leaderboard",
                str(tmp_path / "runs"),
                str(tmp_path / "nothere"),
                "--train",
                "--methods",
                "rnn",
                "--envs",
                "t-ls",
            ]
        )
    assert "nothere" in capsys.readouterr().err and not (tmp_path / "nothere").exists()


def test_fresh_seeds_follow_those_of_the_pilot(tmp_path):
    short = lambda rate, seed: learning(9)(rate, seed)[:21]  # noqa: E731
    pilot = {"seeds": (100, 101, 102), "rates": (1e-3, 3e-3)}
    write_run(tmp_path, "t-ls", "rnn", short, name="pilot", **pilot)
    write_run(tmp_path, "t-ls", "rnn", learning(9), name="long")
    assert Evidence.read(tmp_path).first_fresh_seed(Series("t-ls", "rnn")) == 103


def test_what_is_not_ranked_has_its_own_reason(tmp_path):
    write_run(tmp_path, "mc-ls", "splagger", learning(27), anneal=True)
    short = lambda rate, seed: learning(27)(rate, seed)[:11]  # noqa: E731
    write_run(tmp_path, "mc-ls", "rnn", short, anneal=True)
    assert "other settings" not in leaderboard(tmp_path).left_out
    write_run(tmp_path / "kl", "t-ls", "pearl", learning(16))
    write_run(tmp_path / "kl", "t-ls", "pearl", short, name="both", kl_weights=(1e-6, 1.0))
    found = leaderboard(tmp_path / "kl").left_out
    assert "both (kl_weight=1, only 375,000 frames); `splagger compare` shows other" in found


def test_one_seed_has_no_probability(tmp_path):
    write_run(tmp_path, "t-ls", "splagger", learning(16), seeds=(0,))
    write_run(tmp_path, "t-ls", "rnn", learning(9), seeds=(0,))
    assert [s.improvement for s in leaderboard(tmp_path).standings] == [None, None]
