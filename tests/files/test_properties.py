"""Properties of files: what is written is read, and no bytes whatever end a reader with anything but our errors."""

import contextlib
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from splagger.errors import RunError
from splagger.files.agent_file import open_agent
from splagger.files.array_file import TYPES, DamagedFileError, read_arrays, write_arrays
from splagger.runs.curves import format_curves, parse_curves
from splagger.runs.record import RunRecord

PATH = Path("somewhere")
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, max_side=4)
ARRAYS = st.sampled_from(list(TYPES.values())).flatmap(lambda kind: arrays.arrays(kind, SHAPES))
NUMBERS = st.floats(allow_nan=False) | st.integers(-(2**53), 2**53).map(float)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=8).filter(lambda n: n != "__metadata__"), ARRAYS, max_size=4)
)
@settings(max_examples=40)
def test_arrays_are_read_as_they_were_written(content):
    with tempfile.TemporaryDirectory() as folder:
        write_arrays(Path(folder) / "x", content)
        found = read_arrays(Path(folder) / "x")
    assert {n: (a.dtype, a.shape, a.tobytes()) for n, a in found.items()} == {
        n: (a.dtype, a.shape, a.tobytes()) for n, a in content.items()
    }


@given(st.binary(max_size=200))
@settings(max_examples=60)
def test_other_bytes_are_refused_by_the_readers_of_arrays_and_agents(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npz"
        path.write_bytes(data)
        with pytest.raises(DamagedFileError):
            read_arrays(path)
        with pytest.raises(RunError, match=r"^[^\n]*$"), open_agent(path):
            pass


@given(st.lists(st.tuples(st.integers(0, 10**6), NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_curves_are_read_as_they_were_written(rows):
    table = [{"update": u, "rate": a, "return": b} for u, a, b in rows]
    found = parse_curves(format_curves(table).encode(), PATH)
    assert found is not None
    same = zip(found.to_dict("records"), table, strict=True)
    assert all(math.copysign(1, a[k]) == math.copysign(1, b[k]) for a, b in same for k in b)
    assert found.to_dict("records") == table


@given(st.binary(max_size=80) | st.text('01.,-\n"enaupdtrw', max_size=60).map(str.encode))
def test_any_other_text_of_curves_is_a_table_or_refused(data):
    found = None
    with contextlib.suppress(RunError):
        found = parse_curves(data, PATH, ["update", "return"])
    assert found is None or set(found.columns) == {"update", "return"}


@given(JSON | st.dictionaries(st.sampled_from(["run", "arguments", "update", "stopped"]), JSON))
def test_any_json_is_a_record_or_refused(content):
    record = None
    with contextlib.suppress(RunError):
        record = RunRecord.from_json(json.dumps(content), PATH)
    assert record is None or all(isinstance(name, str) for name in record.name)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.integers(0, 10**9))
def test_records_are_read_as_they_were_written(plan, update):
    record = RunRecord(plan, {"env": "t-ls", "method": "rnn"}, update=update)
    text = record.to_json()
    assert RunRecord.from_json(text, PATH).to_json() == text


def test_the_types_cover_what_training_states_hold():
    assert {np.dtype(kind) for kind in ("f4", "u4", "i4", "?")} <= set(TYPES.values())
