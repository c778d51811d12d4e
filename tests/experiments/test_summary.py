"""One line a run, and one picture of several: what tells lines apart is in their names."""

from pathlib import Path

import pytest

from splagger.experiments import summary
from splagger.recorded import RecordedRun, RunError
from tests.figures.synthetic import learning, write_run


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
    env, method, rate, mean, final, speed, path = summary.summarize(RecordedRun(folder))
    assert (env, method, rate, final) == ("t-ls", "rnn", "0.001", "16.00 (3 seeds)")
    assert float(mean) == pytest.approx(15.4, abs=0.3)
    assert (speed, path) == ("3,200", str(folder))


def test_methods_have_their_colors_and_the_environment_its_best_return(tmp_path, drawn):
    for method in ("splagger", "rnn"):
        write_run(tmp_path, "t-ls", method, learning(9))
    panel, lines = lines_of(tmp_path, drawn)
    assert lines["splagger"].style.color == "#0072B2" and lines["rnn"].style.color == "#D55E00"
    assert (panel.best, panel.x_label) == (16.0, "frames (millions)")
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
    assert panel.best is None  # of a maze of another length it is another


def test_what_was_made_again_elsewhere_is_told_apart_by_its_place(tmp_path, drawn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("before", "after"):
        write_run(tmp_path / name, "t-ls", "rnn", learning(9))
        write_run(tmp_path / name, "t-ls", "rnn", learning(9), name="fresh", seeds=(7, 8))
    _, lines = lines_of(Path(), drawn)
    assert set(lines) == {"rnn, in before", "rnn, in after"}
    assert all(line.seeds == 5 for line in lines.values())


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
