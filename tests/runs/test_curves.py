"""curves.csv: what is read equals what was written."""

import gzip

import pytest

from splagger.errors import RunError
from splagger.runs import curves
from splagger.runs.axes import Axis
from splagger.runs.curves import CURVES, curves_path, format_curves, parse_curves
from splagger.runs.folder import RunFolder

ROWS = [
    {"update": 3, "rate": 1e-05, "return": 2.0, "x": 0.1},
    {"update": 4, "rate": 1e-05, "return": float("nan"), "x": 0.1 + 0.2},
]


def write_curves(folder, rows) -> None:
    RunFolder(folder).write_curves(format_curves(rows))


def read_curves(folder, columns=None):
    return RunFolder(folder).curves(columns)


def texts(rows) -> list[list[str]]:
    return [list(map(repr, row.values())) for row in rows]


def test_curves_are_read_as_they_were_written(tmp_path):
    write_curves(tmp_path, ROWS)
    found = read_curves(tmp_path)
    assert list(found.columns) == list(ROWS[0])
    assert texts(found.to_dict("records")) == texts(ROWS)
    assert texts(found.to_dict("records"))[0] == ["3", "1e-05", "2.0", "0.1"]


def test_curves_that_are_read_and_written_again_are_the_same_bytes(tmp_path):
    write_curves(tmp_path, ROWS)
    before = (tmp_path / CURVES).read_bytes()
    write_curves(tmp_path, read_curves(tmp_path).to_dict("records"))
    assert (tmp_path / CURVES).read_bytes() == before


def test_some_columns_can_be_read_alone(tmp_path):
    write_curves(tmp_path, ROWS)
    found = read_curves(tmp_path, ["update", "rate"])
    assert found.to_dict("list") == {"update": [3, 4], "rate": [1e-05, 1e-05]}


def test_compressed_curves_are_read_where_there_are_no_others(tmp_path):
    write_curves(tmp_path, ROWS)
    plain = read_curves(tmp_path)
    packed = tmp_path / f"{CURVES}.gz"
    packed.write_bytes(gzip.compress((tmp_path / CURVES).read_bytes()))
    assert curves_path(tmp_path) == tmp_path / CURVES
    (tmp_path / CURVES).unlink()
    assert curves_path(tmp_path) == packed
    assert read_curves(tmp_path).equals(plain)


def test_there_are_no_curves_before_the_first_evaluation(tmp_path):
    assert read_curves(tmp_path) is None
    write_curves(tmp_path, [])
    assert read_curves(tmp_path) is None


@pytest.mark.parametrize("data", [b"update,rate\n1,2,3\n1,2,3,4\n", b"\xff\xfe\x00"])
def test_damaged_curves_are_reported_with_their_path(tmp_path, data):
    (tmp_path / CURVES).write_bytes(data)
    with pytest.raises(RunError, match=r"curves\.csv is damaged \(.*\); train that run again"):
        read_curves(tmp_path)


def test_curves_without_a_wanted_column_are_reported(tmp_path):
    write_curves(tmp_path, ROWS)
    with pytest.raises(RunError, match=r"curves\.csv is damaged .*'seed'"):
        read_curves(tmp_path, ["update", "seed"])


def test_a_newer_metric_is_nan_in_older_rows(tmp_path):
    write_curves(tmp_path, [{"update": 1, "kl": 0.5}, {"update": 2, "kl": 0.25, "new": 3.0}])
    assert (tmp_path / "curves.csv").read_text() == "update,kl,new\n1,0.5,nan\n2,0.25,3.0\n"


def test_a_newer_axis_has_its_default_in_older_curves(tmp_path, monkeypatch):
    default = lambda plan: (plan["ppo"]["clip"],)  # noqa: E731
    newer = Axis("clip", "clips", "clip", default, "", newer=True)
    monkeypatch.setattr(curves, "AXES", (*curves.AXES, newer))
    data, plan = format_curves([{"update": 1, "return": 2.0}]).encode(), {"ppo": {"clip": 0.05}}
    found = parse_curves(data, tmp_path, ["clip", "return"], plan)
    assert found.to_dict("records") == [{"return": 2.0, "clip": 0.05}]
    with pytest.raises(RunError, match="it has no column 'kl_weight'"):
        parse_curves(data, tmp_path, ["kl_weight", "return"], plan)


@pytest.mark.parametrize("row", ["2,80,ab", "2,,1.0", "x,80,1.0"])
def test_cells_that_are_no_numbers_are_reported(tmp_path, row):
    """Curves of version 0.1 have no digest that would show the damage."""
    (tmp_path / CURVES).write_text(f"update,frames,return\n1,40,nan\n{row}\n")
    with pytest.raises(RunError, match=r"curves\.csv is damaged \(its column '\w+' "):
        read_curves(tmp_path)
