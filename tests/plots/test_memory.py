"""The picture of a memory's contents, from hand-written files."""

import json

import numpy as np
import pytest
from PIL import Image

from splagger.plots.memory import History, draw_memory, held_since, read_histories

# Neuron 0 never rises; neuron 1 is set at the signal and later again; neuron 2 only at the signal.
EVENTS = [(-1, 0), (-1, 1), (-1, 2), (1, 1), (1, 2), (4, 1)]
HELD = [[-1] * 6, [-1, 1, 1, 1, 4, 4], [-1, 1, 1, 1, 1, 1]]


@pytest.fixture
def folder(tmp_path):
    lines = ["method,seed,step,dimension,value"]
    for method, seed in (("splagger", 3), ("splagger", 4), ("amrl", 3)):
        lines += [f"{method},{seed},{step},{neuron},0.5" for step, neuron in EVENTS]
    (tmp_path / "values.csv").write_text("\n".join(lines) + "\n")
    about = {"when": "initialization", "options": {"env": "t-ls"}}
    note = {"steps": 6, "episode_ends": [2, 5], "signal_steps": [1]}
    agents = [("splagger", 3), ("splagger", 4), ("amrl", 3)]
    notes = [{"method": method, "seed": seed, **note} for method, seed in agents]
    (tmp_path / "analysis.json").write_text(json.dumps(about | {"inputs": notes}))
    return tmp_path


def test_a_neuron_holds_its_last_event(folder):
    histories, where = read_histories(folder)
    assert where == "t-ls, untrained"
    assert [(h.method, h.seed) for h in histories] == [
        ("splagger", 3),
        ("splagger", 4),
        ("amrl", 3),
    ]
    for history in histories:
        assert held_since(history).tolist() == HELD


def test_neurons_that_never_rose_are_included():
    history = History("splagger", 0, np.arange(3), np.full(3, -1), 2, [1], [])
    assert held_since(history).tolist() == [[-1, -1]] * 3


def test_each_method_gets_a_picture(folder):
    paths = draw_memory(folder)
    assert [path.name for path in paths] == ["memory-amrl.png", "memory-splagger.png"]
    with Image.open(paths[1]) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    orange = (pixels == (0xD5, 0x5E, 0x00)).all(axis=2)
    assert orange.mean() > 0.05  # the neurons that hold a value of a signal step
    assert draw_memory(folder, seed=4) == [folder / "memory-splagger.png"]
    with pytest.raises(ValueError, match="has no seed 7"):
        draw_memory(folder, seed=7)
