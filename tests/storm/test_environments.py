"""A short storm of bad environments."""

from tests.storm.environments import storm


def test_bad_environments_are_refused_in_one_line():
    outcome = storm(tries=200, seed=1)
    assert outcome.failures == []
    assert sum(outcome.counts.values()) == 200
