"""The table of returns."""

import pytest

from splagger.stats.evidence import Evidence, Series
from splagger.stats.returns import across, returns
from tests.synthetic import learning, write_run


@pytest.mark.parametrize("anneal", [True, False])
def test_the_probability_needs_the_same_schedule(tmp_path, anneal):
    """Shared frames of runs that differ in length can be compared only if the learning rate is constant."""
    write_run(tmp_path, "t-ls", "splagger", learning(14), anneal=anneal)
    write_run(tmp_path, "t-ls", "rnn", lambda *key: learning(8)(*key)[:21], anneal=anneal)
    rows = {row.series: row for row in returns(Evidence.read(tmp_path))}
    assert rows[Series("t-ls", "rnn")].probability == (None if anneal else 1.0)


def test_means_over_environments_are_over_the_frames_that_all_methods_have(tmp_path):
    """A method that was trained for a quarter of the frames is not compared with all of another one."""
    write_run(tmp_path, "t-ls", "splagger", learning(14))
    write_run(tmp_path, "t-ls", "rnn", lambda *key: learning(14)(*key)[:11])
    envs, found = across(Evidence.read(tmp_path), ["splagger", "rnn"])
    assert envs == ["t-ls"] and found["splagger"] == found["rnn"]
    write_run(tmp_path, "mc-ls", "splagger", learning(20), anneal=True)
    write_run(tmp_path, "mc-ls", "rnn", lambda *key: learning(20)(*key)[:11], anneal=True)
    assert across(Evidence.read(tmp_path), ["splagger", "rnn"])[0] == ["t-ls"]
