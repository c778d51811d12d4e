"""Scripted policies attain the reference returns of the classic tasks; without a memory they do not."""

import functools as ft
import json

import numpy as np
import pytest

from benchmarks.references import RESULT
from benchmarks.scripted.gittins import bayes_optimal_return, gittins_indices
from benchmarks.scripted.policies import Forgetful, steps_toward
from benchmarks.scripted.references import meta_returns, scripted
from benchmarks.scripted.searching import OPTIMAL_TOURS, optimal_grid_return
from splagger import ENVS
from splagger.paper_numbers import PROTOCOLS

CLASSIC = tuple(name for name, row in ENVS.items() if row.classic)
LARGE = (
    "bandit-50",
    "tabular-mdp",
    "dark-room",
)  # the same code as others, with more steps or states
every_task = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGE)) for n in CLASSIC]
)
COUNT = 400


@ft.cache
def returns(name, index):
    row = ENVS[name]
    return meta_returns(row.meta, scripted(row.env)[index], COUNT, seed=1)


def assert_mean(found, expected):
    """Asserts that the mean is within 4 standard errors, plus rounding, of the expected value."""
    error = found.std(ddof=1) / len(found) ** 0.5
    assert found.mean() == pytest.approx(expected, abs=4 * error + 0.3 * abs(expected) / 100)


@every_task
def test_a_random_policy_has_the_committed_return(name):
    assert_mean(returns(name, 0), PROTOCOLS[name].scale.guess)


@every_task
def test_the_reference_policy_has_the_committed_return(name):
    assert_mean(returns(name, 1), PROTOCOLS[name].scale.best)


@every_task
def test_other_scripted_policies_have_the_committed_returns(name):
    for index, plateau in enumerate(PROTOCOLS[name].plateaus, start=2):
        assert_mean(returns(name, index), plateau.value)
        assert returns(name, index).mean() < returns(name, 1).mean()


@every_task
def test_the_reference_needs_a_memory(name):
    """The same policy, whose memory is emptied at every step, stays far below."""
    row, protocol = ENVS[name], PROTOCOLS[name]
    found = meta_returns(row.meta, Forgetful(scripted(row.env)[1]), COUNT, seed=2)
    span = protocol.scale.best - protocol.scale.guess
    assert found.mean() < protocol.scale.guess + 2 / 3 * span


def test_every_classic_task_has_a_scale_and_few_frames():
    assert len(CLASSIC) == 8
    for name in CLASSIC:
        protocol = PROTOCOLS[name]
        assert protocol.classic and not protocol.small
        assert protocol.frames <= 2_000_000
        assert protocol.scale.guess < protocol.scale.best == ENVS[name].best_return


def test_scales_agree_with_the_recorded_estimates():
    """Within two standard errors; where a return is known exactly, the scale is exact."""
    for row in json.loads(RESULT.read_text())["rows"]:
        protocol = PROTOCOLS[row["env"]]
        known = {"random": protocol.scale.guess, **{p.label: p.value for p in protocol.plateaus}}
        expected = known.get(row["policy"], protocol.scale.best)
        rounding = 0.005 * max(1, abs(expected) / 10)
        assert row["mean"] == pytest.approx(expected, abs=3 * row["error"] + rounding), row


def test_rollouts_hold_whole_tasks():
    """Where meta-episodes have a fixed length, tasks are replayed side by side."""
    rows = [ENVS[name] for name in CLASSIC if ENVS[name].meta.task_length]
    assert len(rows) == 7 and not any(row.ppo.steps % row.meta.task_length for row in rows)


def test_the_tours_of_the_grid_are_walks_that_find_every_goal():
    goals = ENVS["goal-grid"].env.goals
    for tour in OPTIMAL_TOURS:
        path = np.array([(0, 0), *tour])
        assert (np.abs(np.diff(path, axis=0)).sum(1) == 1).all() and len(tour) <= 15
    assert {cell for tour in OPTIMAL_TOURS for cell in tour} >= set(goals)
    assert len(set(OPTIMAL_TOURS[0]) & set(goals)) == 14
    steps = {cell: k for k, cell in enumerate(OPTIMAL_TOURS[1], 1)}
    assert all(steps[x, y] == x + y for x, y in set(goals) - set(OPTIMAL_TOURS[0]))


def test_the_optimum_of_the_grid_equals_the_return_of_its_tours():
    """Exactly: a sum over all goals."""
    value = lambda step: (16 - step) - 0.1 * (step - 1)  # noqa: E731
    total, goals = 0.0, ENVS["goal-grid"].env.goals
    for goal in goals:
        episode = 0 if goal in OPTIMAL_TOURS[0] else 1
        found = OPTIMAL_TOURS[episode].index(goal) + 1
        total += -1.5 * episode + value(found) + (3 - episode) * value(sum(goal))
    assert optimal_grid_return() == pytest.approx(total / len(goals))
    assert optimal_grid_return() == pytest.approx(PROTOCOLS["goal-grid"].scale.best, abs=0.005)


def test_gittins_indices_have_their_known_properties():
    index = gittins_indices(20)
    means = np.array([[(w + 1) / (w + m + 2) for m in range(5)] for w in range(5)])
    np.testing.assert_allclose(index[1, :5, :5], means, atol=0.005)  # one pull: the mean
    assert (index[10, :5, :5] >= means - 0.005).all()  # knowledge has a value
    assert (np.diff(index[10, :5, :5], axis=0) > 0).all()  # wins raise the index, losses lower it
    assert (np.diff(index[10, :5, :5], axis=1) < 0).all()
    assert (np.diff(index[1:15, 0, 0]) >= 0).all()  # more remaining pulls raise it


def exact_return(indices, arms, pulls):
    """Returns the expected return of the policy that pulls the arm with the largest index."""

    @ft.cache
    def value(counts, time):
        if time == pulls:
            return 0.0
        scores = [indices[pulls - time][wins, losses] for wins, losses in counts]
        arm = int(np.argmax(scores))
        wins, losses = counts[arm]
        p = (wins + 1) / (wins + losses + 2)
        after = lambda new: value((*counts[:arm], new, *counts[arm + 1 :]), time + 1)  # noqa: E731
        return p * (1 + after((wins + 1, losses))) + (1 - p) * after((wins, losses + 1))

    return value(((0, 0),) * arms, 0)


@pytest.mark.parametrize(("arms", "pulls"), [(2, 12), (3, 7)])
def test_gittins_indices_are_nearly_bayes_optimal(arms, pulls):
    best = bayes_optimal_return(arms, pulls)
    found = exact_return(gittins_indices(pulls), arms, pulls)
    assert 0.998 * best < found <= best + 1e-6


def test_steps_lead_to_the_target():
    cells, targets = (
        np.array([(0, 0), (3, 3), (2, 2), (1, 4)]),
        np.array([(2, 1), (1, 3), (2, 2), (1, 0)]),
    )
    assert steps_toward(cells, targets).tolist() == [2, 4, 0, 3]
