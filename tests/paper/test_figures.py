"""The paper's figures: every panel exists, and the same runs give the same bytes."""

import csv
import hashlib
import io
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from splagger import ENVS, METHODS
from splagger.cli import main
from splagger.paper.figures import FIGURES, ROWS, select
from splagger.paper.reproduce import commands
from splagger.paper_numbers import SCALES
from splagger.plots import export
from splagger.plots.draw import canvas_of
from splagger.plots.panels import AnalysisPanel, CurvePanel, Figure, Missing
from splagger.plots.styles import STYLES, style_of
from splagger.runs.run import Run
from splagger.stats.evidence import Evidence
from tests.synthetic import learning, write_analysis, write_run

PANELS = [panel for figure in ROWS for panel in figure.panels]
CURVES = [panel for panel in PANELS if isinstance(panel, CurvePanel)]
OPERATORS = {"splagger", "rnn", "splagger-avg", "splagger-avgmax"}
OPERATORS |= {"splagger-softmax", "splagger-wsoftmax"}
BASELINES = {"splagger", "rnn", "cnp", "amrl", "pearl"}
PREVIEWED = {"splagger", "rnn", "splagger-nornn", "amrl-nornn"}
ANALYZED = {"splagger", "rnn", "amrl", "splagger-nornn"}
PLANNING = PREVIEWED | {"amrl", "splagger-nosplit"}
PEARLS, INVARIANT = {"splagger", "pearl", "pearl-vari"}, {"splagger", "rnn", "lstm-invinit"}
# the paper: figure → panel → methods
PAPER = {
    "preview": {"mc-ls": PREVIEWED, "planning": PREVIEWED},
    "mujoco": {"cheetah-dir": BASELINES, "walker": BASELINES},
    "memory": {"t-ls": BASELINES, "mc-ls": BASELINES},
    "aggregation": {
        "planning": PLANNING,
        "t-agreement": OPERATORS,
        "t-latent": OPERATORS | {"splagger-nornn", "cnp"},
    },
    "planning-noobs": {"planning-noobs": {"rnn", "splagger-nornn"}},
    "tuning": {
        "kl-t-ls": {"pearl"},
        "kl-walker": {"pearl"},
        "temperature-t-ls": {"softmax-nornn", "wsoftmax-nornn"},
    },
    "pearl-vari": {env: PEARLS for env in ("t-ls", "cheetah-dir", "walker")},
    "invinit": {env: INVARIANT for env in ("planning", "t-agreement")},
    "transformer": {"t-ls": {"splagger", "transformer"}},
    "wavg": {"t-agreement": OPERATORS | {"splagger-wavg"}},
}


def test_every_panel_of_the_paper_has_its_methods():
    found = {
        figure.name: {p.name: {s.method for s, _ in p.entries} for p in figure.panels}
        for figure in ROWS
        if all(isinstance(panel, CurvePanel) for panel in figure.panels)
    }
    assert found == PAPER
    analyses = {p.analysis: set(p.methods) for p in PANELS if isinstance(p, AnalysisPanel)}
    names = ("gradient-first", "gradient-parameters", "gradient-inputs", "permutation")
    expected = {(name, "initialization"): ANALYZED for name in names}
    expected |= {("pearl-variance", when): {"pearl"} for when in ("initialization", "t-ls")}
    assert analyses == expected


def test_every_series_can_be_run_and_has_a_unique_style():
    for panel in CURVES:
        for series, style in panel.entries:
            assert series.env in ENVS
            assert METHODS[series.method].name == series.method  # not an alias
            assert series.method in STYLES and style.label
        looks = [(style.color, style.dash) for _, style in panel.entries]
        assert len(set(looks)) == len(looks), panel
    assert len({style[1:] for style in STYLES.values()}) == len(STYLES)


# Linear RGB as seen without red, green or blue cones (Machado, Oliveira and Fernandes, 2009)
VISIONS = {
    "normal": np.eye(3),
    "protan": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.052]],
    "deutan": [[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritan": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(color, vision):
    """Returns the CIE L*a*b* coordinates of a color under this kind of vision."""
    levels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    x, y, z = TO_XYZ @ np.clip(np.array(vision) @ linear, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = (np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
def test_lines_of_a_panel_are_distinguishable_for_color_blind_readers(vision):
    """Lines with the same dashes differ by several just noticeable differences (2.3), and none is close to white."""
    for panel in CURVES:
        styles = [style for _, style in panel.entries]
        for one, other in itertools.combinations(styles, 2):
            distance = np.linalg.norm(
                lab(one.color, VISIONS[vision]) - lab(other.color, VISIONS[vision])
            )
            assert distance > 13 or one.dash != other.dash, (panel.name, one.label, other.label)
        assert all(lab(style.color, VISIONS[vision])[0] < 86 for style in styles)


def test_a_method_looks_the_same_in_every_figure():
    tuned = {"tuning"}  # shows one method with several values of a setting
    for figure in ROWS:
        for panel in figure.panels if figure.name not in tuned else ():
            if isinstance(panel, CurvePanel):
                for series, style in panel.entries:
                    assert style[1:] == style_of(series.method)[1:]


def test_scales_agree_with_the_registry():
    paper = {n: r for n, r in ENVS.items() if not r.small and not r.classic}
    known = {n: r.best_return for n, r in paper.items() if r.best_return is not None}
    assert {name: scale.best for name, scale in SCALES.items()} == known
    assert all(scale.guess < scale.best for scale in SCALES.values())


def test_plateaus_are_shown_in_every_panel_of_their_environment():
    panels = [panel for figure in ROWS for panel in figure.panels if panel.name == "planning"]
    assert len(panels) == 3
    for panel in panels:
        assert panel.reference_lines == (("best known", 38.0), ("explores every time", 17.85))


@pytest.fixture
def small(tmp_path):
    """Writes runs of one panel and analyses of another, and reads them."""
    for method, final in (("splagger", 16), ("rnn", 3)):
        write_run(tmp_path / "runs", "t-ls", method, learning(final, start=2, noise=0.3))
    flat = {method: lambda step: 1.0 for method in ANALYZED}
    write_analysis(tmp_path / "analyses", "gradient-inputs", "initialization", flat)
    variance = {"pearl": lambda step: 1 / (1 + step)}
    write_analysis(tmp_path / "analyses", "pearl-variance", "initialization", variance, 1, 12)
    return Evidence.read(tmp_path / "runs", analyses=tmp_path / "analyses")


def test_the_same_runs_give_the_same_bytes(small, tmp_path):
    for name in ("memory", "gradients", "pearl-variance"):
        for folder in ("one", "two"):
            paths = export.save(FIGURES[name], small, tmp_path / folder)
            assert [path.name for path in paths] == [f"{name}.{k}" for k in ("png", "pdf", "csv")]
    contents = [{p.name: p.read_bytes() for p in (tmp_path / d).iterdir()} for d in ("one", "two")]
    assert contents[0] == contents[1] and len(contents[0]) == 9
    for name, data in contents[0].items():
        assert b"Date" not in data and b"atplotlib" not in data, name


def test_neighbors_with_the_same_axis_share_its_label(tmp_path):
    for env in ("t-agreement", "t-latent"):
        write_run(tmp_path / "runs", env, "rnn", learning(16))
    for name in ("gradient-first", "gradient-parameters"):
        write_analysis(tmp_path, name, "initialization", {m: lambda step: 1.0 for m in ANALYZED})
    evidence = Evidence.read(tmp_path / "runs", analyses=tmp_path)
    labels = {}
    for name in ("aggregation", "gradients"):
        canvas = canvas_of(FIGURES[name], export.drawable(FIGURES[name], evidence))
        labels[name] = [bool(axes.get_ylabel()) for axes in canvas.axes]
    assert labels == {"aggregation": [True, False], "gradients": [True, True]}


SCRIPT = """
import sys
from splagger.plots import export
from splagger.stats.evidence import Evidence
from splagger.paper.figures import FIGURES
export.save(FIGURES["memory"], Evidence.read(sys.argv[1]), sys.argv[2])
"""


def test_another_process_gives_the_same_bytes(small, tmp_path):
    export.save(FIGURES["memory"], small, tmp_path / "here")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "runs"), str(tmp_path / "there")]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "1"})
    for kind in ("png", "pdf", "csv"):
        here, there = ((tmp_path / d / f"memory.{kind}").read_bytes() for d in ("here", "there"))
        assert hashlib.sha256(here).hexdigest() == hashlib.sha256(there).hexdigest(), kind


def test_the_table_has_the_points_that_are_drawn(small):
    drawn = export.drawable(FIGURES["memory"], small)
    assert [panel.name for panel, _ in drawn] == ["t-ls"]
    rows = list(csv.DictReader(io.StringIO(export.table(drawn))))
    assert {row["method"] for row in rows} == {"splagger", "rnn"}
    line = drawn[0][1][0]
    own = [row for row in rows if row["method"] == "splagger"]
    assert np.allclose([float(row["mean"]) for row in own], line.mean, rtol=1e-5)
    assert [float(row["x"]) for row in own[:2]] == [0, 0.0375]
    assert all(float(row["low"]) <= float(row["mean"]) <= float(row["high"]) for row in own)
    assert {(row["rate"], row["seeds"]) for row in own} == {("0.001", "3")}


def test_the_table_matches_one_computed_by_hand(tmp_path):
    """A figure of three evaluations, computed by hand: [2, 6, 10] and [4, 8, 12], too few to be smoothed."""
    curve = lambda rate, seed: np.array([2.0, 6.0, 10.0]) + 2 * seed  # noqa: E731
    write_run(tmp_path, "t-ls", "rnn", curve, seeds=(0, 1))
    drawn = export.drawable(FIGURES["memory"], Evidence.read(tmp_path))
    about = "t-ls,RNN,rnn,0.001,2,one rate"
    assert export.table(drawn).splitlines() == [
        ",".join(export.COLUMNS),
        f"{about},0,3,2,4",
        f"{about},0.0375,7,6,8",
        f"{about},0.075,11,10,12",
    ]


def test_a_short_run_is_smoothed_like_the_long_one_beside_it(tmp_path):
    """Two methods that learn the same have the same line as far as both were trained."""
    curve = learning(14)
    write_run(tmp_path, "t-ls", "rnn", curve)
    write_run(tmp_path, "t-ls", "amrl", lambda *key: curve(*key)[:21])
    ((_, lines), *_) = export.drawable(FIGURES["memory"], Evidence.read(tmp_path))
    long, short = sorted(lines, key=lambda line: -len(line.x))
    assert (len(long.x), len(short.x)) == (41, 21)
    assert np.allclose(long.mean[:21], short.mean) and not np.allclose(short.mean, curve(0, 0)[:21])


def test_each_dimension_and_their_mean_are_drawn(small):
    ((_, lines),) = export.drawable(FIGURES["pearl-variance"], small)
    assert len(lines) == 13 and sum(line.named for line in lines) == 2
    assert np.allclose(lines[-1].mean, np.mean([line.mean for line in lines[:-1]], axis=0))


def test_pictures_can_be_opened_and_pdf_text_is_text(small, tmp_path):
    png, pdf, _ = export.save(FIGURES["memory"], small, tmp_path)
    with Image.open(png) as image:
        assert min(image.size) > 400 and len(image.convert("RGB").getcolors(10**7)) > 50
    assert b"/Type0" in pdf.read_bytes() or b"/TrueType" in pdf.read_bytes()
    assert b"/Type3" not in pdf.read_bytes()


def test_a_figure_without_runs_writes_nothing(tmp_path):
    assert export.save(FIGURES["memory"], Evidence([]), tmp_path / "out") == []
    assert not (tmp_path / "out").exists()


def test_commands_are_listed_for_what_is_missing(small):
    found = commands(FIGURES["memory"].missing(small), small, "results", "analyses")
    assert len(found) == 8  # three on T-LS, five on MC-LS
    assert found[0] == "splagger train t-ls amrl --out results"
    assert all(command.endswith(" --out results") for command in found)
    found = commands(FIGURES["gradients"].missing(small), small, "results", "analyses")
    assert "splagger analyse permutation --out analyses" in found and len(found) == 3
    missing = FIGURES["pearl-variance"].missing(small)
    training, analysis = commands(missing, small, "results", "analyses")
    assert training == "splagger train t-ls pearl --out results"
    start = "splagger analyse pearl-variance --out analyses --run results/t-ls/pear"
    assert analysis.startswith(start) and analysis.endswith(" --every-seed")
    assert commands(Missing(), small, "results", "analyses") == []


def test_an_analysis_uses_the_recorded_or_planned_run(tmp_path):
    figure = FIGURES["pearl-variance"]
    both = Figure("both", "", "", (*figure.panels, *FIGURES["tuning"].panels[:1]))
    found = commands(both.missing(Evidence([])), Evidence([]), "results", "analyses")
    training, analysis = (next(c for c in found if word in c) for word in ("t-ls pearl", "--run"))
    assert "--kl-weights" in training  # one run for the sweep and the analysis
    swept = Run.create("t-ls", "pearl", kl_weights=(1, 0.01, 0.0001, 1e-6, 0))
    assert str(swept.folder("results")) in analysis
    folder = write_run(tmp_path, "t-ls", "pearl", learning(16))
    read = Evidence.read(tmp_path)
    found = commands(figure.missing(read), read, "results", "analyses")
    assert not any("train" in command for command in found)
    assert any(f"--run {folder.resolve()} --every-seed" in command for command in found)


def test_a_tuning_sweep_is_one_command():
    found = commands(FIGURES["tuning"].missing(Evidence([])), Evidence([]), "results", "analyses")
    assert len(found) == 4
    assert "--kl-weights 1.0 0.01 0.0001 1e-06 0.0 " in found[0]
    assert "train t-ls softmax-nornn" in found[2] and "--temperatures 0.1 1.0 " in found[2]


def test_a_single_panel_can_be_selected():
    (figure,) = select("aggregation/t-latent")
    assert [panel.name for panel in figure.panels] == ["t-latent"]
    assert select("all") == ROWS
    with pytest.raises(ValueError, match="no figure 'memry'; did you mean memory"):
        select("memry")


def test_the_command_draws_figures_and_lists_missing_runs(small, tmp_path, capsys):
    where = ["--runs", str(tmp_path / "runs"), "--analyses", str(tmp_path / "analyses")]
    main(["figure", "memory", *where, "--out", str(tmp_path / "out")])
    out = capsys.readouterr().out
    assert f"memory: {tmp_path}/out/memory.png" in out
    assert out.count("missing, made by: splagger train") == 8
    main(["figure", "wavg", *where, "--out", str(tmp_path / "none")])
    assert "wavg: nothing to draw" in capsys.readouterr().out


def test_without_recorded_results_the_command_says_where_they_are(tmp_path, capsys):
    """As in a folder in which only the package is installed."""
    with pytest.raises(SystemExit) as stopped:
        main(["figure", "all", "--runs", str(tmp_path / "results")])
    printed = capsys.readouterr()
    assert stopped.value.code == 2 and printed.out == ""
    assert "recorded results are in the repository" in printed.err and "--runs" in printed.err
