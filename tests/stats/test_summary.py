"""One line a run, and one picture of several: what tells lines apart is in their names."""

import json
from pathlib import Path

import pytest

from splagger.errors import RunError
from splagger.plots.curves import _labels, curves_of
from splagger.runs.folder import RunFolder
from splagger.stats import summary
from splagger.stats.evidence import Evidence
from splagger.stats.variants import variants
from tests.synthetic import learning, write_run


@pytest.fixture
def drawn(monkeypatch):
    """The lines that are drawn, instead of a picture."""
    seen = []
    monkeypatch.setattr(summary, "picture", lambda figure, drawn, kind: seen.extend(drawn) or b"")
    return seen


def lines_of(root, drawn):
    summary.plot(root, path=root / "curves.png")
    ((panel, lines),) = drawn
    return panel, {line.style.label: line for line in lines}


def test_a_summary_tells_the_best_rate_and_where_it_ended(tmp_path):
    curve = lambda rate, seed: learning(16 if rate == 1e-3 else 4, speed=50)(rate, seed)  # noqa: E731
    folder = write_run(tmp_path, "t-ls", "rnn", curve, rates=(3e-3, 1e-3))
    env, method, rate, mean, final, speed, path = summary.summarize(RunFolder(folder))
    assert (env, method, rate, final) == ("t-ls", "rnn", "0.001", "16.00 (3 seeds)")
    assert float(mean) == pytest.approx(15.4, abs=0.3)
    assert (speed, path) == ("3,200", str(folder))


def test_methods_have_their_colors_and_the_environment_its_best_return(tmp_path, drawn):
    for method in ("splagger", "rnn"):
        write_run(tmp_path, "t-ls", method, learning(9))
    panel, lines = lines_of(tmp_path, drawn)
    assert lines["splagger"].style.color == "#0072B2" and lines["rnn"].style.color == "#D55E00"
    assert (panel.marks, panel.x_label) == ((("best known", 16.0),), "frames (millions)")
    assert lines["rnn"].x[-1] == 1.5


def test_numbers_that_one_run_sweeps_are_lines_of_their_own(tmp_path, drawn):
    write_run(tmp_path, "t-ls", "pearl", learning(9), kl_weights=(1.0, 0.0))
    _, lines = lines_of(tmp_path, drawn)
    assert set(lines) == {"pearl, kl weight 1", "pearl, kl weight 0"}
    assert len({line.style.color for line in lines.values()}) == 2


def test_fresh_seeds_are_drawn_instead_of_those_the_rate_was_chosen_on(tmp_path, drawn):
    write_run(tmp_path, "t-ls", "rnn", learning(9), rates=(1e-3, 3e-4))
    write_run(tmp_path, "t-ls", "rnn", learning(7), name="fresh", seeds=range(100, 110))
    _, lines = lines_of(tmp_path, drawn)
    assert lines["rnn"].seeds == 10 and lines["rnn"].mean[-1] == pytest.approx(7, abs=0.2)


def test_other_settings_are_other_lines(tmp_path, drawn):
    write_run(tmp_path, "t-ls", "rnn", learning(9), episodes=4)
    longer = {"overrides": {"env.length": 200}, "clip": 0.06, "episodes": 4}
    write_run(tmp_path, "t-ls", "rnn", learning(7), name="longer", **longer)
    write_run(tmp_path, "t-ls", "rnn", learning(5), name="once", episodes=1)
    panel, lines = lines_of(tmp_path, drawn)
    assert list(lines) == [
        "rnn, episodes 4",
        "rnn, env.length=200, episodes 4",
        "rnn, episodes 1",
    ]
    assert len({line.style.color for line in lines.values()}) == 3
    assert panel.marks == ()  # of a maze of another length it is another


def test_what_was_made_again_elsewhere_is_told_apart_by_its_place(tmp_path, drawn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("before", "after"):
        write_run(tmp_path / name, "t-ls", "rnn", learning(9))
        write_run(tmp_path / name, "t-ls", "rnn", learning(9), name="fresh", seeds=(7, 8))
    _, lines = lines_of(Path(), drawn)
    assert set(lines) == {"rnn, in before", "rnn, in after"}
    assert all(line.seeds == 5 for line in lines.values())


def test_what_nothing_else_tells_apart_has_the_name_of_its_folder(tmp_path, drawn):
    for name, clip in (("one", 0.05), ("two", 0.06)):  # as after an edit of one's own aggregator
        write_run(tmp_path, "t-ls", "mine", learning(9), name=name, clip=clip)
    _, lines = lines_of(tmp_path, drawn)
    assert set(lines) == {"mine, run one", "mine, run two"}


def test_copies_of_a_run_are_told_apart_wherever_they_lie(tmp_path, drawn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, final in (("a", 9), ("b", 5)):
        write_run(tmp_path / name, "t-ls", "rnn", learning(final)).rename(tmp_path / f"flat-{name}")
    (write_run(tmp_path / "c", "t-ls", "rnn", learning(9)) / "curves.csv").unlink()
    _, lines = lines_of(Path(), drawn)
    assert set(lines) == {"rnn, in flat-a", "rnn, in flat-b"}


def test_long_names_stay_different_and_dollars_are_no_formulas(tmp_path):
    for slippery in (False, True):
        kwargs = {"is_slippery": slippery, "map_name": "8x8", "why": r"a$\b$ " + 40 * "-"}
        settings = {"overrides": {"env.kwargs": json.dumps(kwargs)}, "clip": 0.05 + slippery}
        name = f"slippery-{slippery}"
        write_run(tmp_path, "gym:Lake-v1", "rnn", learning(9), name=name, **settings)
    entrants = variants(Evidence.read(tmp_path).runs)
    labels = {line.style.label for line in curves_of(entrants)[1]}
    assert labels == {"rnn, is_slippery=False", "rnn, is_slippery=True"}
    assert _labels(["x" * 50 + side + "y" * 50 for side in "lr"])[0].count("x") == 50
    write_run(tmp_path, "gym:Lake-v1", r"a$\b$", learning(9))
    summary.plot(tmp_path, path=tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_pictures_that_cannot_be_are_refused(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    with pytest.raises(RunError, match=r"curves\.doc: pictures are written as png, pdf, svg"):
        summary.plot(tmp_path, path=tmp_path / "curves.doc")
    write_run(tmp_path, "t-latent", "rnn", learning(9))
    with pytest.raises(RunError, match="one environment, these are t-latent, t-ls"):
        summary.plot(tmp_path, path=tmp_path / "curves.png")
    (tmp_path / "t-ls/rnn/run/curves.csv").unlink()
    with pytest.raises(RunError, match="first evaluation"):
        summary.plot(tmp_path / "t-ls", path=tmp_path / "curves.png")
