"""The table of returns."""

import pytest

from splagger.stats.evidence import Evidence, Series
from splagger.stats.returns import returns
from tests.synthetic import learning, write_run


@pytest.mark.parametrize("anneal", [True, False])
def test_the_probability_needs_the_same_schedule(tmp_path, anneal):
    """Shared frames of runs that differ in length can be compared only if the learning rate is constant."""
    write_run(tmp_path, "t-ls", "splagger", learning(14), anneal=anneal)
    write_run(tmp_path, "t-ls", "rnn", lambda *key: learning(8)(*key)[:21], anneal=anneal)
    rows = {row.series: row for row in returns(Evidence.read(tmp_path))}
    assert rows[Series("t-ls", "rnn")].probability == (None if anneal else 1.0)
