"""Compares the buffer with plain lists of the inserted trajectories."""

import functools as ft

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from splagger.memory import Transition
from splagger.ppo.buffer import Buffer, insert, sample

STEPS, ENVS, HORIZON = 10, 3, 8
ROWS = 2 * (ENVS + STEPS * ENVS)  # the smallest size that training allows
quick_insert, quick_sample = jax.jit(insert), jax.jit(sample, static_argnums=1)
EXAMPLE = Transition(jnp.zeros(2), jnp.int32(0), jnp.zeros(()), jnp.zeros(2))


class Twin:
    """A list per environment. Rows are numbered in the order in which they are opened; the newest are kept."""

    def __init__(self):
        self.open = [(env, []) for env in range(ENVS)]  # row, steps
        self.rows, self.complete = ENVS, {}

    def step(self, env, step, ended):
        row, steps = self.open[env]
        steps.append(step)
        if ended:
            self.complete[row] = steps
            self.open[env] = self.rows, []
            self.rows += 1

    def kept(self):
        return [steps for row, steps in self.complete.items() if row >= self.rows - ROWS]


def rollouts(count, end_rate, seed=0):
    """Yields random distinct steps. Tasks end at random or at the horizon, and continue across rollouts."""
    rng, ages = np.random.default_rng(seed), np.zeros(ENVS, int)
    for index in range(count):
        ended = np.zeros((STEPS, ENVS), bool)
        for t in range(STEPS):
            ended[t] = (rng.random(ENVS) < end_rate) | (ages == HORIZON - 1)
            ages = np.where(ended[t], 0, ages + 1)
        number = np.arange(STEPS * ENVS, dtype=np.float32).reshape(STEPS, ENVS)
        obs, next_obs = rng.normal(size=(2, STEPS, ENVS, 2)).astype(np.float32)
        action = rng.integers(4, size=(STEPS, ENVS), dtype=np.int32)
        yield Transition(obs, action, number + index * STEPS * ENVS, next_obs), ended


@ft.cache
def filled(count, end_rate, seed=0):
    buffer, twin = Buffer.create(ROWS, HORIZON, ENVS, EXAMPLE), Twin()
    for steps, ended in rollouts(count, end_rate, seed):
        buffer = quick_insert(buffer, steps, ended)
        for t, env in np.ndindex(STEPS, ENVS):
            twin.step(env, jax.tree.map(lambda x, at=(t, env): x[at], steps), ended[t, env])
    return jax.device_get(buffer), twin


def readable(steps, length):
    """Returns a trajectory as nested tuples of plain numbers, to compare and to hash."""
    plain = lambda step: tuple(tuple(np.ravel(leaf).tolist()) for leaf in step)  # noqa: E731
    return tuple(plain([leaf[t] for leaf in steps]) for t in range(length))


def of_twin(twin):
    return {readable([np.stack(x) for x in zip(*steps, strict=True)], len(steps)) for steps in twin}


@pytest.mark.parametrize("end_rate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("count", [1, 3, 30])
def test_the_buffer_holds_the_inserted_trajectories(count, end_rate):
    buffer, twin = filled(count, end_rate)
    rows = np.flatnonzero(buffer.complete)
    kept = [readable([x[row] for x in buffer.steps], buffer.length[row]) for row in rows]
    assert len(kept) == len(set(kept)) and set(kept) == of_twin(twin.kept())
    assert buffer.next_row == twin.rows
    assert buffer.open_row.tolist() == [row for row, _ in twin.open]
    assert buffer.position.tolist() == [len(steps) for _, steps in twin.open]


def test_the_ring_wraps_around_in_the_test_above():
    _, twin = filled(30, 0.3)
    lengths = {len(steps) for steps in twin.complete.values()}
    assert twin.rows > 3 * ROWS and lengths == set(range(1, HORIZON + 1))


@pytest.mark.parametrize("rollouts", [3, 30])
def test_samples_are_distinct_complete_trajectories(rollouts):
    buffer, twin = filled(rollouts, 0.3)
    for seed in range(10):
        steps, lengths, weights = jax.device_get(quick_sample(buffer, 5, jr.key(seed)))
        drawn = {readable([x[i] for x in steps], lengths[i]) for i in range(5)}
        assert len(drawn) == 5 and drawn <= of_twin(twin.kept())
        np.testing.assert_array_equal(weights, np.ones(5))


def test_missing_trajectories_have_weight_zero():
    buffer, twin = filled(1, 0.3)
    count = len(twin.kept())
    steps, lengths, weights = jax.device_get(quick_sample(buffer, ROWS, jr.key(0)))
    np.testing.assert_array_equal(weights, np.arange(ROWS) < count)
    drawn = {readable([x[i] for x in steps], lengths[i]) for i in range(count)}
    assert drawn == of_twin(twin.kept())
    nothing = Buffer.create(ROWS, HORIZON, ENVS, EXAMPLE)
    np.testing.assert_array_equal(quick_sample(nothing, 5, jr.key(0))[2], np.zeros(5))


def test_all_complete_trajectories_are_equally_likely():
    buffer, twin = filled(1, 0.3)
    draw = lambda buffer, key: sample(buffer, 2, key)[0].reward[:, 0]  # noqa: E731
    drawn = jax.jit(jax.vmap(draw, in_axes=(None, 0)))(buffer, jr.split(jr.key(0), 2000))
    _, counts = np.unique(drawn, return_counts=True)
    expected = 4000 / len(twin.kept())
    assert len(counts) == len(twin.kept()) and (np.abs(counts / expected - 1) < 0.25).all()
