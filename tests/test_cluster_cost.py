"""The simulated schedule of the cost table: its limits are known."""

import pytest

from benchmarks.cluster_cost import Job, makespan

GAIN = {1: 1.0, 2: 1.2, 3: 1.35}
JOBS = [Job(f"{i}", 10.0, 100.0 * i, 0.0) for i in range(1, 7)]


def test_one_program_at_a_time_takes_the_sum_and_enough_gpus_the_longest():
    assert makespan(JOBS, 1, 1, GAIN) == pytest.approx(sum(job.length for job in JOBS))
    assert makespan(JOBS, 6, 1, GAIN) == pytest.approx(610.0)
    assert makespan(JOBS, 64, 3, GAIN) == pytest.approx(610.0)
    assert makespan([], 8, 1, GAIN) == 0.0


def test_two_equal_programs_gain_what_was_measured():
    pair = [Job("a", 0.0, 120.0, 0.0), Job("b", 0.0, 120.0, 0.0)]
    assert makespan(pair, 1, 2, GAIN) == pytest.approx(200.0)
    robots = [Job("a", 0.0, 0.0, 50.0), Job("b", 0.0, 0.0, 50.0)]
    assert makespan(robots, 1, 2, GAIN) == pytest.approx(100.0)  # they share the cores
    assert makespan([pair[0], robots[0]], 1, 2, GAIN) == pytest.approx(
        50.0 + (1 - 50.0 / 200.0) * 120.0
    )


def test_a_list_schedule_is_at_most_a_third_longer_than_the_bounds():
    for gpus in (2, 3, 4):
        bound = max(sum(job.length for job in JOBS) / gpus, 610.0)
        assert bound <= makespan(JOBS, gpus, 1, GAIN) + 1e-6 <= 4 / 3 * bound
