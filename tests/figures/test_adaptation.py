"""The picture of how a return adds up, from hand-written files."""

import json

import numpy as np
import pytest

from splagger.figures import adaptation
from splagger.figures.adaptation import draw_adaptation


@pytest.fixture
def drawn(monkeypatch):
    """What is given to be drawn: the panel and its lines."""
    seen = []

    def picture(figure, parts, kind):
        seen.extend(parts)
        return b"a picture"

    monkeypatch.setattr(adaptation, "picture", picture)
    return seen


def write(tmp_path, when):
    """Two seeds: one earns 1 at every second step, one at every step."""
    folder = tmp_path / "adaptation" / when
    folder.mkdir(parents=True)
    lines = ["method,seed,step,dimension,value"]
    lines += [f"rnn,0,{step},0,{step % 2}" for step in range(10)]
    lines += [f"rnn,1,{step},0,1" for step in range(10)]
    (folder / "values.csv").write_text("\n".join(lines) + "\n")
    about = {"agents": {"rnn": "a run"}, "options": {"env": "t-ls"}}
    (folder / "analysis.json").write_text(json.dumps(about))
    return folder


def test_rewards_are_added_up_and_seeds_averaged(tmp_path, drawn):
    folder = write(tmp_path, "t-ls")
    assert draw_adaptation(folder) == [folder / "adaptation.png"]
    ((panel, lines),) = drawn
    (line,) = lines  # no policy that learning stops at is known there
    assert panel.title == "Return within a task · t-ls"
    np.testing.assert_array_equal(line.x, np.arange(11))
    np.testing.assert_allclose(line.mean, [0, 0.5, 1.5, 2, 3, 3.5, 4.5, 5, 6, 6.5, 7.5])
    assert line.seeds == 2 and line.low[-1] == 5 and line.high[-1] == 10


def test_who_never_learns_the_task_is_a_straight_line(tmp_path, drawn):
    draw_adaptation(write(tmp_path, "planning"))
    ((_, (_, straight)),) = drawn
    assert straight.style.label == "explores every time"
    assert straight.x.tolist() == [0, 10] and straight.mean.tolist() == [0, 17.85]


def test_untrained_agents_are_named_so(tmp_path, drawn):
    draw_adaptation(write(tmp_path, "initialization"))
    assert drawn[0][0].title == "Return within a task · t-ls, untrained"
