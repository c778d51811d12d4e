"""TensorBoard event files: they show the same numbers as the curves, also after an interruption."""

import os
import sys

import pandas
import pytest
from tensorboardX import record_writer
from tensorboardX.proto.event_pb2 import Event, SessionLog

from splagger.training import runner
from tests.tiny import BATCH, SHORT, tiny


def read(file) -> list[Event]:
    """Parses TensorBoard's records: length, checksum, message, checksum."""
    data, events = file.read_bytes(), []
    while data:
        end = 12 + int.from_bytes(data[:8], "little")
        for content, checksum in ((data[:8], data[8:12]), (data[12:end], data[end : end + 4])):
            assert int.from_bytes(checksum, "little") == record_writer.masked_crc32c(content)
        events.append(Event.FromString(data[12:end]))
        data = data[end + 4 :]
    return events


def shown(folder) -> dict[tuple[str, int], float]:
    """Returns the values that TensorBoard shows: a restart discards those at its step and later."""
    seen = {}
    for event in (event for file in sorted(folder.iterdir()) for event in read(file)):
        if event.session_log.status == SessionLog.START:
            seen = {(name, step): v for (name, step), v in seen.items() if step < event.step}
        seen |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
    return seen


def assert_shows_the_curves(folder) -> None:
    curves = pandas.read_csv(folder / "curves.csv")
    names = [name for name in curves.columns[7:] if curves[name].notna().any()]
    for point in tiny().points:
        rows = (curves.rate == point.rate) & (curves.seed == point.seed) & (curves["update"] > 0)
        values = curves[rows].set_index("frames")[names].to_dict()
        expected = {(n, step): value for n in names for step, value in values[n].items()}
        seen = shown(folder / "tensorboard" / f"rate{point.rate:g}-seed{point.seed}")
        assert {key: seen[key] for key in expected if key in seen} == pytest.approx(expected)


def test_tensorboard_shows_the_curves(trained):
    folders = sorted(path.name for path in (trained / "tensorboard").iterdir())
    assert folders == sorted(f"rate{p.rate:g}-seed{p.seed}" for p in tiny().points)
    assert_shows_the_curves(trained)


def test_tensorboard_shows_the_curves_of_a_run_that_was_continued(tmp_path):
    folder, _ = runner.execute(tiny(frames=SHORT * BATCH), tmp_path, show=False)
    for file in folder.path.glob("tensorboard/*/*"):
        file.rename(file.with_name("events.out.tfevents.0000000001.earlier"))
    runner.execute(tiny(), tmp_path, show=False)
    assert_shows_the_curves(folder.path)


def test_members_that_differ_in_another_axis_have_separate_folders(tmp_path):
    run = tiny(rates=(1e-3,), seeds=1, entropy_weights=(0.0, 0.1))
    events = runner.EventFiles(tmp_path, run.points, 0)
    events.add(run.points[1], {"update": 1, "frames": 80, "return": 2.5})
    first, second = sorted(tmp_path.iterdir())
    assert shown(first) == {} and shown(second) == {("return", 80): 2.5}


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX limits")
def test_more_members_than_files_that_may_be_open(tmp_path):
    import resource

    run = tiny(rates=(1e-3,), seeds=80)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 40, hard))
    try:
        events = runner.EventFiles(tmp_path, run.points, 0)
        for point in run.points:
            events.add(point, {"update": 1, "frames": 80, "return": 2.5})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert all(shown(folder) == {("return", 80): 2.5} for folder in tmp_path.iterdir())
