"""The picture of the cumulative return, from hand-written files."""

import json

import numpy as np
import pytest

from splagger.plots import adaptation
from splagger.plots.adaptation import draw_adaptation


@pytest.fixture
def drawn(monkeypatch):
    """Collects each panel and its lines instead of drawing them."""
    seen = []

    def picture(figure, parts, kind):
        seen.extend(parts)
        return b"a picture"

    monkeypatch.setattr(adaptation, "picture", picture)
    return seen


def write(tmp_path, env, when=None, usual=True, methods=("rnn",)):
    """Writes an analysis of two seeds: one earns 1 at every second step, the other at every step."""
    folder = tmp_path / "adaptation" / (when or env)
    folder.mkdir(parents=True)
    lines = ["method,seed,step,dimension,value"]
    for method in methods:
        lines += [f"{method},0,{step},0,{step % 2}" for step in range(10)]
        lines += [f"{method},1,{step},0,1" for step in range(10)]
    (folder / "values.csv").write_text("\n".join(lines) + "\n")
    about = {"env": env, "when": when or env, "usual": usual, "sequences": 200}
    about["agents"] = dict.fromkeys(methods, "a run")
    (folder / "analysis.json").write_text(json.dumps(about))
    return folder


def test_rewards_are_summed_over_steps_and_averaged_over_seeds(tmp_path, drawn):
    folder = write(tmp_path, "t-ls")
    assert draw_adaptation(folder) == [folder / "adaptation.png"]
    ((panel, lines),) = drawn
    (line,) = lines  # this environment has no plateaus
    assert panel.title == "Return within a task · t-ls"
    assert panel.y_label == "cumulative return"
    np.testing.assert_array_equal(line.x, np.arange(11))
    np.testing.assert_allclose(line.mean, [0, 0.5, 1.5, 2, 3, 3.5, 4.5, 5, 6, 6.5, 7.5])
    assert line.seeds == 2 and line.low[-1] == 5 and line.high[-1] == 10


def test_a_policy_without_adaptation_is_a_straight_line(tmp_path, drawn):
    draw_adaptation(write(tmp_path, "planning"))
    ((panel, (_, straight)),) = drawn
    assert straight.style.label == "explores every time"
    assert straight.x.tolist() == [0, 10] and straight.mean.tolist() == [0, 17.85]
    assert panel.x_label == "step of the meta-episode (mean of 200 tasks)"


def test_plateaus_are_not_drawn_for_changed_environments(tmp_path, drawn):
    draw_adaptation(write(tmp_path, "planning", usual=False))
    assert len(drawn[0][1]) == 1


def test_untrained_agents_are_labeled_as_such(tmp_path, drawn):
    draw_adaptation(write(tmp_path, "planning", when="initialization"))
    assert drawn[0][0].title == "Return within a task · planning, untrained"
    assert len(drawn[0][1]) == 2


def test_custom_methods_have_distinct_colors(tmp_path, drawn):
    draw_adaptation(write(tmp_path, "t-ls", methods=("custom", "other")))
    assert len({line.style.color for line in drawn[0][1]}) == 2


def test_a_damaged_analysis_in_a_neighboring_folder_does_not_matter(tmp_path):
    folder, neighbor = write(tmp_path, "t-ls"), write(tmp_path, "t-latent")
    (neighbor / "analysis.json").write_text("{")
    (path,) = draw_adaptation(folder)
    assert path.stat().st_size > 1000
