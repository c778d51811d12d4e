"""A short storm of damaged files."""

from tests.storm.files import ENDS, storm


def test_damaged_files_are_never_believed():
    outcome = storm(tries=40, seed=1)
    assert outcome.failures == []
    assert sum(outcome.counts.values()) == 40 and set(outcome.counts) == set(ENDS)
