"""Faults: a naive loop over a rollout finds the same ones, at resets and boundaries and between episodes."""

import functools as ft
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from splagger.envs import MetaEnv, TMaze
from splagger.memory import Transition
from splagger.ppo import faults
from splagger.ppo.faults import EARLY, LATE, NONE, OBSERVATION, OVERLONG, REWARD, Fault, describe
from splagger.ppo.rollout import Rollout
from tests.ppo.probe_envs import RandomEnds

STEPS, ENVS, SIZE = 12, 3, 4
FIXED, RANDOM = MetaEnv(TMaze(length=4), 2), MetaEnv(RandomEnds(), 2)  # tasks of 8 steps, of 2 to 8


def rollout(obs, reached, reward, action, task_done) -> Rollout:
    """Returns a rollout with only those fields that faults depend on."""
    zeros = jnp.zeros((STEPS, ENVS))
    transitions = Transition(*map(jnp.asarray, (obs, action, reward, obs)))
    rest = zeros[..., None], zeros[..., None], zeros, task_done, task_done
    return Rollout(transitions, *rest, jnp.asarray(task_done), jnp.asarray(reached))


@ft.partial(jax.jit, static_argnums=0)
def found_in(env, rollout, rollouts):
    return faults.in_rollout(env, rollout, rollouts + 1, rollouts)


def plain(fault) -> Fault:
    return Fault(*(np.asarray(leaf).item() for leaf in fault))


def healthy(env, rollouts, rng):
    """Returns the arrays of a healthy rollout; `rollouts` others came before it."""
    obs, reached = rng.normal(size=(2, STEPS, ENVS, SIZE)).astype(np.float32)
    reward, done = rng.normal(size=(STEPS, ENVS)), rng.random((STEPS, ENVS)) < 0.3
    if env is FIXED:
        done = np.tile((np.arange(STEPS) + rollouts * STEPS + 1) % 8 == 0, (ENVS, 1)).T
    action = rng.normal(size=(STEPS, ENVS, 2)).astype(np.float32)
    return {"obs": obs, "reached": reached, "reward": reward.astype(np.float32)} | {
        "action": action,
        "task_done": done,
    }


def by_loop(env, rollouts, obs, reached, reward, action, task_done) -> Fault:
    """Looks at one step after another, in each of them at one environment after another."""
    first = rollouts * STEPS if env is FIXED else 0
    if env is FIXED:
        for t in range(STEPS):
            step = (first + t) % 8 + 1
            if any(task_done[t, n] != (step == 8) for n in range(ENVS)):
                return Fault(LATE if step == 8 else EARLY, rollouts + 1, step)
    for t in range(STEPS):
        for n in range(ENVS):
            if not np.isfinite(action[:t, n]).all():
                continue  # the agent diverged before
            looks = [(obs[t, n], OBSERVATION, 0)]
            if np.isfinite(action[t, n]).all():
                looks += [(reached[t, n], OBSERVATION, 1), (reward[t, n, None], REWARD, 1)]
            for values, kind, taken in looks:
                if np.isfinite(values).all():
                    continue
                index = int(np.flatnonzero(~np.isfinite(values))[0])
                ends = np.flatnonzero(task_done[:t, n])
                known = env is FIXED or rollouts == 0 or ends.size > 0
                step = t - ends[-1] - 1 if ends.size else t + first % 8
                value = values[index]
                sign = 0 if math.isnan(value) else int(np.sign(value))
                at = index if kind == OBSERVATION else 0
                return Fault(kind, rollouts + 1, int(step) + taken, known, at, sign)
    return Fault(NONE, rollouts + 1)


@pytest.mark.parametrize("env", [FIXED, RANDOM], ids=["fixed", "random"])
def test_faults_equal_those_of_a_loop(env):
    kinds = set()
    for seed in range(120):
        rng = np.random.default_rng(seed)
        rollouts = int(rng.integers(3)) * int(rng.integers(2))
        arrays = healthy(env, rollouts, rng)
        for name in rng.choice([*arrays, "nothing"], size=2):
            if name == "task_done":
                place = rng.integers(STEPS), rng.integers(ENVS)
                arrays[name][place] ^= True
            elif name != "nothing":
                place = tuple(rng.integers(size) for size in arrays[name].shape)
                arrays[name][place] = rng.choice([np.nan, np.inf, -np.inf])
        expected = by_loop(env, rollouts, **arrays)
        found = plain(found_in(env, rollout(**arrays), jnp.int32(rollouts)))
        kinds.add(found.kind)
        if expected.kind == NONE:
            assert found.kind == NONE, seed
        else:
            assert found == expected, seed
    assert kinds == {NONE, OBSERVATION, REWARD} | ({EARLY, LATE} if env is FIXED else set())


def test_many_updates_do_not_overflow():
    """The position in a task is exact even if the number of steps is larger than an int32."""
    rollouts = 2**31 - 2
    arrays = healthy(FIXED, rollouts, np.random.default_rng(0))
    assert found_in(FIXED, rollout(**arrays), jnp.int32(rollouts)).kind == NONE
    arrays["task_done"] = np.roll(arrays["task_done"], 1, axis=0)
    assert found_in(FIXED, rollout(**arrays), jnp.int32(rollouts)).kind != NONE


def test_the_first_quantity_of_training_that_is_not_finite_is_named():
    finite = {name: jnp.ones(3) for name in ("policy_loss", "value_loss", "encoder_grad_norm")}
    update = jnp.int32(7)
    assert faults.in_training(finite, update).kind == NONE
    later = finite | {"policy_loss": jnp.array([1, 1, jnp.nan])}
    both = later | {"encoder_grad_norm": jnp.array([1, jnp.inf, jnp.nan])}
    assert "policy_loss is not" in faults.describe(plain(faults.in_training(later, update)), FIXED)
    fault = plain(faults.first(Fault(), faults.in_training(both, update)))
    assert "encoder_grad_norm is not" in faults.describe(fault, FIXED)
    assert faults.when(fault) == "at update 7" and not fault.is_of_environment


def test_parameters_that_are_not_finite_are_a_fault():
    tree = {"a": jnp.ones((2, 2)), "b": (jnp.ones(()), jnp.arange(3.0))}
    assert faults.in_parameters(tree, jnp.int32(1)).kind == NONE
    for bad in (jnp.inf, jnp.nan):
        broken = tree | {"b": (jnp.ones(()), jnp.array([0.0, 1.0, bad]))}
        fault = plain(faults.first(faults.in_parameters(broken, jnp.int32(1))))
        assert faults.describe(fault, FIXED) == "parameters are not finite"


@pytest.mark.parametrize("ends", [8, 9, 100])
def test_a_task_that_does_not_end_within_its_horizon_is_a_fault_of_an_evaluation(ends):
    """One of three environments ends its task after `ends` steps, the others after four and at the horizon of eight."""
    done = np.zeros((8, ENVS), bool)
    done[3::4, 0] = done[7, 1] = True
    done[ends - 1 :, 2] = True
    arrays = {k: v[:8] for k, v in healthy(RANDOM, 0, np.random.default_rng(0)).items()}
    found = plain(
        faults.in_meta_episodes(RANDOM, rollout(**arrays | {"task_done": done}), jnp.int32(5))
    )
    assert (found.kind, found.update) == ((NONE, 5) if ends == 8 else (OVERLONG, 5))
    if ends > 8:
        assert found.breaks_length and found.is_of_environment
        assert "a task did not end within 8 steps, the horizon of 2 episodes" in describe(
            found, RANDOM
        )
