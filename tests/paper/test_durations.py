"""Durations of planned experiments: the benchmarks' numbers, and recorded runs before them."""

import json
from pathlib import Path

import pytest

from splagger.cli import main
from splagger.paper.durations import BENCHMARKS, REFERENCE, seconds_of, total_of
from splagger.paper.figures import select
from splagger.paper.reproduce import Plan, sweeps
from splagger.runs.run import Run
from splagger.stats.evidence import Evidence
from tests.synthetic import learning, write_run

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
FILES = {
    (REFERENCE, "t-ls"): "train-t-ls-h200",
    (REFERENCE, "planning"): "train-planning-h200",
    (REFERENCE, "mc-ls"): "train-mc-ls-15-h200",
    ("cpu", "t-ls"): "train-t-ls-cpu",
}
PLAN = Plan(Run.create("t-ls", "rnn", frames=1_500_000, rates=[1e-3], seeds=10), "fresh seeds")


def test_the_table_is_that_of_the_benchmarks():
    assert set(FILES) == {(device, env) for device, envs in BENCHMARKS.items() for env in envs}
    for (device, env), file in FILES.items():
        found = json.loads((RESULTS / f"{file}.json").read_text())
        assert found["provenance"]["device"] == f"1 × {device}"
        assert BENCHMARKS[device][env] == round(found["frames_per_second_with_evaluation"])


def test_durations_follow_from_benchmarks_unless_a_run_was_recorded_on_this_device(tmp_path):
    nothing = Evidence([])
    assert seconds_of(PLAN, "cpu", nothing) == pytest.approx(PLAN.frames / 1565)
    assert seconds_of(PLAN, "unheard of", nothing) is None
    path = write_run(tmp_path, "t-ls", "rnn", learning(9)) / "run.json"
    record = json.loads(path.read_text())
    for platform, kernels, expected in (
        ("cpu", {}, PLAN.frames / 5000),
        ("gpu", {"kernels": "on"}, PLAN.frames / 5000),
        ("gpu", {}, PLAN.frames / 1565),
    ):
        about = record["provenance"] | {"device": "1 × cpu", "platform": platform} | kernels
        path.write_text(json.dumps(record | {"provenance": about, "frames_per_second": 5000.0}))
        assert seconds_of(PLAN, "cpu", Evidence.read(tmp_path)) == pytest.approx(expected)


def test_every_environment_without_robots_has_an_estimate_on_both_devices():
    plans = sweeps(select("all"), Evidence([]))
    for device in BENCHMARKS:
        known = {p.run.row.name for p in plans if seconds_of(p, device, Evidence([]))}
        assert known == {p.run.row.name for p in plans} - {"cheetah-dir", "walker"}
    assert total_of([1.0, None, 2.5]) == (3.5, 1)


def test_plans_show_durations(tmp_path, capsys):
    main(["reproduce", "memory/t-ls", "--plan", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    assert "here (cpu)" in out and f"on one {REFERENCE}" in out
    assert "  here (cpu): about 20 h\n" in out and "  on one NVIDIA H200: about 81 s\n" in out
