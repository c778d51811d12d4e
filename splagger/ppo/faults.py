"""Faults that a program finds while it runs: environments that break their protocol, and numbers that are not finite.

A fault is a few numbers per member, so that looking for it costs almost nothing. `describe` turns it into a
sentence after the program has returned.
"""

import functools as ft
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from splagger.envs import AbstractMetaEnv
from splagger.ppo.rollout import Rollout
from splagger.tables import count

NONE, EARLY, LATE, OVERLONG, OBSERVATION, REWARD = range(6)
# Numbers of training in the order in which they are computed; the kind of the first one follows REWARD.
QUANTITIES = (
    "policy_loss",
    "value_loss",
    "entropy",
    "kl",
    "encoder_grad_norm",
    "policy_grad_norm",
    "reconstruction_loss",
    "parameters",
)


class Fault(NamedTuple):
    """The first fault of a member.

    - `kind`: NONE, EARLY or LATE (a task did not have its declared length), OVERLONG (it did not end within the
      declared horizon), OBSERVATION or REWARD (not finite), or a quantity of training that is not finite.
    - `update`: the update at which it was found, counted from 1; 0 before training.
    - `step`: steps since the start of a task if `in_task`, else since the start of the rollout.
    - `index`: that of the first number in the observation that is not finite.
    - `sign`: of an infinite number; 0 for NaN.
    """

    kind: Int[Array, "*runs"] | int = NONE
    update: Int[Array, "*runs"] | int = 0
    step: Int[Array, "*runs"] | int = 0
    in_task: Bool[Array, "*runs"] | bool = True
    index: Int[Array, "*runs"] | int = 0
    sign: Int[Array, "*runs"] | int = 0

    @property
    def breaks_length(self) -> bool:
        """Whether a task did not have its declared length."""
        return self.kind in (EARLY, LATE, OVERLONG)

    @property
    def is_of_environment(self) -> bool:
        """Whether the environment is at fault, and not the numbers of training."""
        return self.breaks_length or self.kind in (OBSERVATION, REWARD)


def first(*faults: Fault) -> Fault:
    """Returns the first fault whose kind is not NONE."""
    either = lambda a, b: jax.tree.map(ft.partial(jnp.where, a.kind > 0), a, b)  # noqa: E731
    return ft.reduce(either, (jax.tree.map(jnp.asarray, fault) for fault in faults))


def earliest(faults: Fault) -> Fault:
    """Returns the first fault along the leading axis."""
    index = jnp.argmax(faults.kind > 0)
    return jax.tree.map(lambda leaf: leaf[index], faults)


def in_rollout(
    env: AbstractMetaEnv, rollout: Rollout, update: Int[Array, ""], rollouts: Int[Array, ""] | int
) -> Fault:
    """Returns the environment's first fault in a rollout.

    `rollouts` is the number of rollouts of equal length before this one, since all environments started.
    """
    steps, length = rollout.task_done.shape[0], env.task_length
    if length is None:
        return _not_finite(rollout, jnp.int32(0), rollouts == 0)._replace(update=update)
    begun = _steps_into_task(steps, length, rollouts)
    faults = _wrong_length(rollout.task_done, length, begun), _not_finite(rollout, begun, True)
    return first(*faults)._replace(update=update)


def in_meta_episodes(env: AbstractMetaEnv, rollout: Rollout, update: Int[Array, ""]) -> Fault:
    """Returns the environment's first fault in a rollout of `env.horizon` steps that started with new tasks."""
    endless = ~rollout.task_done.any(axis=0).all()
    overlong = Fault(jnp.where(endless, OVERLONG, NONE), update)
    return first(in_rollout(env, rollout, update, 0), overlong)


def in_training(metrics: dict[str, Float[Array, " M"]], update: Int[Array, ""]) -> Fault:
    """Returns the first quantity that is not finite, in the order of minibatches and of `QUANTITIES`."""
    names = [name for name in QUANTITIES if name in metrics]
    broken = ~jnp.isfinite(jnp.stack([metrics[name] for name in names], axis=1)).ravel()
    kinds = jnp.array([REWARD + 1 + QUANTITIES.index(name) for name in names], jnp.int32)
    kind = jnp.where(broken.any(), kinds[jnp.argmax(broken) % len(names)], NONE)
    return Fault(kind, update)


def in_parameters(parameters: Any, update: Int[Array, ""]) -> Fault:
    """Returns a fault if any parameter is not finite."""
    finite = all_finite(parameters)
    return in_training({"parameters": jnp.where(finite, 0.0, jnp.nan)[None]}, update)


def all_finite(tree: Any) -> Bool[Array, ""]:
    """Returns whether all numbers in all leaves are finite."""
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()


def _steps_into_task(steps: int, length: int, rollouts) -> Int[Array, ""]:
    """Returns how many steps of the current tasks were taken before a rollout: rollouts · steps mod length."""
    period = length // math.gcd(steps, length)
    table = np.arange(period) * steps % length  # the product itself could overflow in the program
    return jnp.asarray(table, jnp.int32)[rollouts % period]


def _wrong_length(task_done: Bool[Array, "T N"], length: int, begun: Int[Array, ""]) -> Fault:
    """Returns a fault unless tasks end exactly at their step `length`."""
    step = (begun + jnp.arange(task_done.shape[0], dtype=jnp.int32)) % length + 1
    wrong = (task_done != (step == length)[:, None]).any(axis=1)
    where = jnp.argmax(wrong)
    kind = jnp.where(step[where] == length, LATE, EARLY)
    return Fault(jnp.where(wrong.any(), kind, NONE), step=step[where])


def _not_finite(rollout: Rollout, begun: Int[Array, ""], in_task) -> Fault:
    """Returns the first observation or reward that is not finite, unless actions caused it.

    `begun` counts the steps of the first tasks before the rollout; `in_task` says whether it is known.
    """
    assert rollout.reached is not None
    steps, envs = rollout.task_done.shape
    before, after = rollout.transitions.obs, rollout.reached
    reward, action = rollout.transitions.reward, rollout.transitions.action
    acted = _finite(action) if jnp.issubdtype(action.dtype, jnp.floating) else None
    bad_before, bad_after = ~_finite(before), ~_finite(after) | ~jnp.isfinite(reward)
    if acted is not None:  # an agent that diverged is not the environment's fault
        failed = jnp.cumsum(~acted, axis=0)
        bad_before, bad_after = bad_before & (failed - ~acted == 0), bad_after & (failed == 0)
    bad = (bad_before | bad_after).ravel()
    time, env = jnp.divmod(jnp.argmax(bad), envs)

    on_arrival = bad_before[time, env]
    obs = jnp.where(on_arrival, before[time, env], after[time, env])
    index = jnp.argmax(~jnp.isfinite(obs))
    of_obs = ~jnp.isfinite(obs[index])
    value = jnp.where(of_obs, obs[index], reward[time, env])
    times = jnp.arange(steps, dtype=jnp.int32)
    start = jnp.where(rollout.task_done[:, env] & (times < time), times + 1, 0).max()
    return Fault(
        jnp.where(bad.any(), jnp.where(of_obs, OBSERVATION, REWARD), NONE),
        step=time - start + jnp.where(start == 0, begun, 0) + ~on_arrival,
        in_task=(start > 0) | in_task,
        index=index,
        sign=jnp.nan_to_num(jnp.sign(value)).astype(jnp.int32),
    )


def _finite(x: Shaped[Array, "T N ..."]) -> Bool[Array, "T N"]:
    return jnp.isfinite(x).reshape(*x.shape[:2], -1).all(axis=2)


def to_metrics(fault: Fault) -> dict[str, Any]:
    """Returns a fault as metrics, one per field."""
    return {f"fault_{name}": leaf for name, leaf in fault._asdict().items()}


def take(metrics: dict[str, Any]) -> Fault:
    """Removes the fault from metrics, and returns it."""
    return Fault(*(metrics.pop(f"fault_{name}") for name in Fault._fields))


def unstack(faults: Fault) -> list[Fault | None]:
    """Returns the fault of each member as plain numbers, None where there is none."""
    columns = [np.asarray(leaf).tolist() for leaf in faults]
    found = [Fault(*row) for row in zip(*columns, strict=True)]
    return [fault if fault.kind != NONE else None for fault in found]


def describe(fault: Fault, env: AbstractMetaEnv) -> str:
    """Returns what a fault is, in words, for a fault in plain numbers."""
    if not fault.is_of_environment:
        quantity = QUANTITIES[int(fault.kind) - REWARD - 1]
        return f"{quantity} {'are' if quantity == 'parameters' else 'is'} not finite"
    name = env.env.spec.name
    if fault.kind == OVERLONG:
        return (
            f"{name}: a task did not end within {env.horizon} steps, the horizon of {count(env.episodes, 'episode')}; let every "
            "episode end at spec.horizon at the latest, or declare a larger horizon in its EnvSpec"
        )
    if fault.breaks_length:
        found = f"ended at step {fault.step}" if fault.kind == EARLY else "did not end there"
        return (
            f"{name} declares fixed_length=True, so each of its tasks must end at step {env.task_length}, "
            f"but one {found}; declare fixed_length=False in its EnvSpec, or let every episode end at spec.horizon"
        )
    value = {0: "nan", 1: "inf", -1: "-inf"}[int(fault.sign)]
    is_obs = fault.kind == OBSERVATION
    field = f"observation is {value} at index {fault.index}" if is_obs else f"reward is {value}"
    return f"{name}: {field} at step {fault.step} of a {'task' if fault.in_task else 'rollout'}"


def when(fault: Fault) -> str:
    """Returns at which update a fault was found, in words."""
    return f"at update {fault.update}" if fault.update else "before training"
