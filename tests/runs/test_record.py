"""run.json: written and read again unchanged, and refused where it is damaged."""

import json
import math
from pathlib import Path

import pytest

from splagger.errors import RunError
from splagger.runs.record import RunRecord

PATH = Path("somewhere") / "run.json"
RECORD = RunRecord(
    plan={"env": "t-ls", "episodes": 4, "rates": [1e-3, 3e-4], "ppo": {"kind": "PPOConfig"}},
    arguments={"env": "t-ls", "method": "rnn", "overrides": {"ppo.clip": 0.2}},
    provenance={"command": "splagger train t-ls rnn", "started": "2026-01-01T00:00:00Z"},
    finished=True,
    compile_seconds=9.1,
    update=133,
    frames=1_489_600,
    seconds=12.125,
    frames_per_second=3200.5,
    stopped={"rate=0.001,seed=0": 7},
)


def changed(**fields) -> str:
    """The text of the record with other fields and without its digest; None removes a field."""
    data = json.loads(RECORD.to_json()) | {"sha256": None, "curves_sha256": None} | fields
    return json.dumps({name: value for name, value in data.items() if value is not None})


@pytest.mark.parametrize("record", [RECORD, RunRecord({}, {"env": "t-ls", "method": "rnn"})])
def test_a_record_is_read_as_it_was_written(record):
    again = RunRecord.from_json(record.to_json(), PATH)
    assert again == record and again.to_json() == record.to_json()


def test_properties_of_a_record():
    assert RECORD.name == (RECORD.env, RECORD.method) == ("t-ls", "rnn")
    assert RECORD.overrides == {"ppo.clip": 0.2} and RECORD.episodes == 4
    assert RECORD.started == "2026-01-01T00:00:00Z"


def test_the_plan_is_stored_as_run():
    """Recorded results of every version have this name."""
    assert json.loads(RECORD.to_json())["run"] == RECORD.plan


def test_fields_that_a_run_has_only_later_may_be_missing():
    text = json.dumps({"run": {}, "arguments": {"env": "t-ls", "method": "rnn"}})
    record = RunRecord.from_json(text, PATH)
    assert (record.finished, record.update, record.stopped) == (False, 0, {})
    assert record.frames_per_second is None and record.started == ""


MISSING = {
    "no run": ({"run": None}, "lacks 'run'"),
    "run is a list": ({"run": []}, "lacks 'run'"),
    "no arguments": ({"arguments": None}, "lacks 'arguments' with env and method"),
    "no method": ({"arguments": {"env": "t-ls"}}, "lacks 'arguments' with env and method"),
    "no env": ({"arguments": {"method": "rnn"}}, "lacks 'arguments' with env and method"),
    "env is a number": ({"arguments": {"env": 3, "method": "rnn"}}, "lacks 'arguments' with env"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_record_without_a_required_field_is_refused(case):
    fields, message = MISSING[case]
    with pytest.raises(RunError, match=f"somewhere/run.json .*it {message}"):
        RunRecord.from_json(changed(**fields), PATH)


MISTYPED = {
    "provenance": ("a text", []),
    "finished": ("true", 1),
    "compile_seconds": ("9.1", True),
    "update": ("133", 13.5, True),
    "frames": ("many", 1e6, False),
    "seconds": ("12", [12], True),
    "frames_per_second": ("3200", {}, True),
    "stopped": ([], 3, {"rate=0.001,seed=0": "7"}),
}


@pytest.mark.parametrize("name, value", [(n, v) for n, values in MISTYPED.items() for v in values])
def test_a_record_with_a_mistyped_field_is_refused(name, value):
    message = f"somewhere/run.json is damaged .*'{name}'.*--force starts over"
    with pytest.raises(RunError, match=message):
        RunRecord.from_json(changed(**{name: value}), PATH)


WRONG_PLANS = [
    {"ppo": 1},
    {"ppo": [None]},
    {"ppo": {"eval_interval": 0}},
    {"ppo": {"eval_interval": False}},
    {"ppo": {"steps": "80"}},
    {"ppo": {"envs": -1}},
    {"ppo": {"steps": 1.5}},
    {"episodes": "4"},
    {"rates": 3},
    {"rates": ["fast"]},
    {"method": "x"},
    {"method": {}, "ppo": {}},
    {"method": {"aggregator": {"temperature": "x"}}, "ppo": {"entropy": 0.1, "kl_weight": 0.0}},
]


@pytest.mark.parametrize("plan", WRONG_PLANS, ids=str)
def test_a_plan_that_no_run_records_is_refused(plan):
    with pytest.raises(RunError, match=r"somewhere/run\.json is damaged \((its|it has no) "):
        RunRecord.from_json(changed(run=plan), PATH)


@pytest.mark.parametrize("frames", [math.inf, -math.inf, math.nan, True, "many"])
def test_frames_that_no_run_records_are_refused(frames):
    arguments = {"env": "t-ls", "method": "rnn", "frames": frames}
    with pytest.raises(RunError, match=r"somewhere/run\.json is damaged \(its frames are"):
        RunRecord.from_json(changed(arguments=arguments), PATH)


def test_a_record_that_lost_its_digest_is_refused():
    data = json.loads(RECORD.to_json())
    del data["sha256"]
    with pytest.raises(RunError, match="its content is not what was written"):
        RunRecord.from_json(json.dumps(data), PATH)


@pytest.mark.parametrize("change", [{"update": 134}, {"finished": False}, {"new": 1}])
def test_a_record_that_was_changed_after_writing_is_refused(change):
    text = json.dumps(json.loads(RECORD.to_json()) | change)
    with pytest.raises(RunError, match=r"its content is not what was written.*--force starts over"):
        RunRecord.from_json(text, PATH)


def test_a_record_may_be_formatted_otherwise():
    text = json.dumps(dict(reversed(json.loads(RECORD.to_json()).items())))
    assert RunRecord.from_json(text, PATH) == RECORD


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null"])
def test_a_text_that_is_not_a_json_object_is_refused(text):
    with pytest.raises(RunError, match=r"somewhere/run\.json is damaged .*--force starts over"):
        RunRecord.from_json(text, PATH)
