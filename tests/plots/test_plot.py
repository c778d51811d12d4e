"""Learning curves of any runs in one picture: labels contain what distinguishes the lines."""

import json
import pickle
import sys
from pathlib import Path

import pytest

import splagger
from splagger.errors import RunError
from splagger.plots import plot
from splagger.plots.curves import _labels, curves_of, with_distinct_colors
from splagger.plots.styles import style_of
from splagger.stats.evidence import Evidence
from splagger.stats.variants import variants
from tests.synthetic import learning, write_run


@pytest.fixture
def drawn(monkeypatch):
    """Collects the lines to be drawn instead of drawing them."""
    seen = []
    module = sys.modules[plot.__module__]  # `splagger.plots.plot` is the function
    monkeypatch.setattr(module, "canvas_of", lambda figure, drawn: seen.extend(drawn))
    monkeypatch.setattr(module, "encoded", lambda canvas, kind: b"")
    return seen


def lines_of(root, drawn):
    plot(root, path=root / "curves.png")
    ((panel, lines),) = drawn
    return panel, {line.style.label: line for line in lines}


def test_methods_have_their_colors_and_the_environment_its_best_return(tmp_path, drawn):
    for method in ("splagger", "rnn"):
        write_run(tmp_path, "t-ls", method, learning(9))
    panel, lines = lines_of(tmp_path, drawn)
    assert lines["splagger"].style.color == "#0072B2" and lines["rnn"].style.color == "#D55E00"
    assert (panel.reference_lines, panel.x_label) == ((("best known", 16.0),), "frames (millions)")
    assert panel.y_label == "return per meta-episode"
    assert lines["rnn"].x[-1] == 1.5


def test_each_value_of_a_swept_setting_is_a_line(tmp_path, drawn):
    write_run(tmp_path, "t-ls", "pearl", learning(9), kl_weights=(1.0, 0.0))
    _, lines = lines_of(tmp_path, drawn)
    assert set(lines) == {"pearl, kl weight 1", "pearl, kl weight 0"}
    assert len({line.style.color for line in lines.values()}) == 2


def test_fresh_seeds_are_drawn_instead_of_the_seeds_the_rate_was_chosen_on(tmp_path, drawn):
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
    assert panel.reference_lines == ()  # they depend on the maze's length


def test_repeated_runs_in_other_folders_are_labeled_by_their_folder(tmp_path, drawn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("before", "after"):
        write_run(tmp_path / name, "t-ls", "rnn", learning(9))
        write_run(tmp_path / name, "t-ls", "rnn", learning(9), name="fresh", seeds=(7, 8))
    _, lines = lines_of(Path(), drawn)
    assert set(lines) == {"rnn, in before", "rnn, in after"}
    assert all(line.seeds == 5 for line in lines.values())


def test_runs_that_nothing_else_distinguishes_are_labeled_by_their_run_folder(tmp_path, drawn):
    for name, clip in (("one", 0.05), ("two", 0.06)):  # as after an edit of a custom aggregator
        write_run(tmp_path, "t-ls", "custom", learning(9), name=name, clip=clip)
    _, lines = lines_of(tmp_path, drawn)
    assert set(lines) == {"custom, run one", "custom, run two"}


def test_copies_of_a_run_are_labeled_by_their_path(tmp_path, drawn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, final in (("a", 9), ("b", 5)):
        write_run(tmp_path / name, "t-ls", "rnn", learning(final)).rename(tmp_path / f"flat-{name}")
    (write_run(tmp_path / "c", "t-ls", "rnn", learning(9)) / "curves.csv").unlink()
    _, lines = lines_of(Path(), drawn)
    assert set(lines) == {"rnn, in flat-a", "rnn, in flat-b"}


def test_long_labels_stay_distinct_and_dollar_signs_are_not_formulas(tmp_path):
    for slippery in (False, True):
        kwargs = {"is_slippery": slippery, "map_name": "8x8", "why": r"a$\b$ " + 40 * "-"}
        settings = {"overrides": {"env.kwargs": json.dumps(kwargs)}, "clip": 0.05 + slippery}
        name = f"slippery-{slippery}"
        write_run(tmp_path, "gym:Lake-v1", "rnn", learning(9), name=name, **settings)
    found = variants(Evidence.read(tmp_path).runs)
    labels = {line.style.label for line in curves_of(found)[1]}
    assert labels == {"rnn, is_slippery=false", "rnn, is_slippery=true"}
    assert _labels(["x" * 50 + side + "y" * 50 for side in "lr"])[0].count("x") == 50
    write_run(tmp_path, "gym:Lake-v1", r"a$\b$", learning(9))
    plot(tmp_path, path=tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_every_environment_has_a_panel(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    write_run(tmp_path, "t-latent", "rnn", learning(9))
    write_run(tmp_path, "mc-ls", "rnn", lambda rate, seed: learning(9)(rate, seed)[:0], frames=0)
    canvas = plot(tmp_path, path=tmp_path / "curves.png")
    assert [axes.get_title("left") for axes in canvas.axes if axes.get_visible()] == [
        "t-latent",
        "t-ls",
    ]


def test_impossible_pictures_are_refused(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    with pytest.raises(RunError, match=r"curves\.doc must end in one of png, pdf, svg"):
        plot(tmp_path, path=tmp_path / "curves.doc")
    for number in range(12):
        write_run(tmp_path, f"gym:Mine-v{number}", "rnn", learning(9))
    with pytest.raises(RunError, match="at most 12 environments, these are gym:Mine-v0, gym"):
        plot(tmp_path, path=tmp_path / "curves.png")
    (tmp_path / "t-ls/rnn/run/curves.csv").unlink()
    with pytest.raises(RunError, match="first evaluation"):
        plot(tmp_path / "t-ls", path=tmp_path / "curves.png")


def test_plot_returns_a_figure_and_leaves_matplotlib_alone(tmp_path):
    import matplotlib
    from matplotlib.figure import Figure

    write_run(tmp_path, "t-ls", "rnn", learning(2.0))
    before = matplotlib.get_backend(), dict(matplotlib.rcParams)
    figure = splagger.plot(tmp_path)
    assert isinstance(figure, Figure) and figure.axes[0].lines
    assert (matplotlib.get_backend(), dict(matplotlib.rcParams)) == before


def test_notebooks_show_the_figure(tmp_path):
    """Without pyplot, IPython shows what `_repr_png_` returns; the figure can still be copied and pickled."""
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    figure = splagger.plot(tmp_path)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert pickle.loads(pickle.dumps(figure)).axes[0].get_title() == figure.axes[0].get_title()


def test_methods_of_the_paper_keep_their_colors_beside_others(tmp_path):
    for name, level in (("mine", 16), ("splagger", 8)):
        write_run(tmp_path, "t-ls", name, learning(level))
    ((_, lines),) = with_distinct_colors([curves_of(variants(Evidence.read(tmp_path).runs))])
    found = {line.method: line.style.color for line in lines}
    assert found["splagger"] == style_of("splagger").color != found["mine"]


def test_a_label_has_one_color_in_all_panels(tmp_path, drawn):
    """In the second environment, the ranking of the lines is reversed, and a third line is added."""
    for env, finals in {"gym:A-v0": (9, 4), "gym:B-v0": (4, 9, 6)}.items():
        for skip, final in enumerate(finals):
            settings = {"overrides": {"method.skip": skip / 2}, "clip": 0.05 + 0.1 * skip}
            write_run(tmp_path, env, "splagger", learning(final), name=f"s{skip}", **settings)
    plot(tmp_path, path=tmp_path / "curves.png")
    pairs = {(line.style.label, line.style.color) for _, lines in drawn for line in lines}
    assert len(pairs) == len({label for label, _ in pairs}) == len({c for _, c in pairs}) == 3


def test_environments_without_an_evaluation_need_no_panel(tmp_path, drawn):
    write_run(tmp_path, "t-ls", "rnn", learning(9))
    for number in range(12):
        never = lambda rate, seed: learning(9)(rate, seed)[:0]  # noqa: E731
        write_run(tmp_path, f"gym:Mine-v{number}", "rnn", never, frames=0, finished=False)
    plot(tmp_path, path=tmp_path / "curves.png")
    assert len(drawn) == 1
