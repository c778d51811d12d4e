"""A short storm of damaged files."""

from tests.storm.files import ENDS, storm

TRIES = 25  # `make storm` tries more


def test_damaged_files_are_never_believed():
    outcome = storm(tries=TRIES, seed=1)
    assert outcome.failures == []
    assert sum(outcome.counts.values()) == TRIES and set(outcome.counts) == set(ENDS)
