"""The cost of recorded runs: agents, frames and hours by kind of device."""

import json

import pytest

from splagger.stats.effort import effort
from splagger.stats.evidence import Evidence
from tests.synthetic import learning, write_run


def test_hours_count_devices_and_frames_count_agents(tmp_path):
    """Two rates × three seeds on two GPUs, and one rate × three seeds on a CPU; others have no hours."""
    write(tmp_path, "splagger", (3e-3, 1e-3), "gpu", "2 × NVIDIA H200", 1800.0)
    write(tmp_path, "rnn", (1e-3,), "cpu", "1 × cpu", 900.0)
    write(tmp_path, "amrl", (1e-3,), "<b>", "many × <b>", 900.0)
    found = effort(Evidence.read(tmp_path).runs)
    assert (found.runs, found.agents, found.frames) == (3, 12, 12 * 1_000_000)
    assert found.hours == pytest.approx({"GPU": 1.0, "CPU": 0.25})
    assert list(found.hours) == ["GPU", "CPU"]


def write(root, method, rates, platform, device, seconds):
    path = write_run(root, "t-ls", method, learning(9), rates=rates) / "run.json"
    record = json.loads(path.read_text())
    record["provenance"] |= {"platform": platform, "device": device}
    path.write_text(json.dumps(record | {"seconds": seconds, "frames": 1_000_000}))
