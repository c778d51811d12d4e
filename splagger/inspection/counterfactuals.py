"""What the memory is worth: the same task with a memory that was changed.

Each intervention is played twice. Played freely, it shows how the return changes. Along the path of the unchanged
agent, it shows at every step how much the distribution over actions changes.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from splagger.agents.player import Player
from splagger.errors import SettingError
from splagger.inspection.interventions import Intervention, interventions
from splagger.inspection.trace import Trace, trace


class Outcome(NamedTuple):
    """The effect of one intervention on one task.

    - `returns`: cumulative, of an agent that acts with the changed memory.
    - `changed`: the fraction of steps on the unchanged path at which the most likely action differs; the mean
      distance for continuous actions.
    - `distance`: that between both distributions over actions at each step of the unchanged path, 0 to 1.
    """

    name: str
    about: str
    returns: Float[np.ndarray, " S"]
    changed: float
    distance: Float[np.ndarray, " T"]


class Effect(NamedTuple):
    """The effect of one intervention, averaged over tasks."""

    name: str
    mean: float  # return
    margin: float  # half the width of its 95% interval
    changed: float  # the fraction of actions that differ on the unchanged path


def counterfactuals(
    player: Player, original: Trace, task_seed: int, cut: int | None = None
) -> list[Outcome]:
    """Returns the outcome of every intervention that the environment and the memory allow.

    - `original`: the trace of the unchanged agent on this task.
    - `cut`: the step before which the memory is emptied or replaced; by default the middle of the last episode.
    """
    cut = _middle(original) if cut is None else cut
    if not 0 <= cut < len(original.reward):
        raise SettingError(f"cut must be a step from 0 to {len(original.reward) - 1}, got {cut}")
    return [
        _outcome(player, original, task_seed, case)
        for case in interventions(player, original, task_seed, cut)
    ]


def effects(player: Player, tasks: int = 30, first_seed: int = 0) -> list[Effect]:
    """Returns the mean return of the unchanged agent and of every intervention, over the same tasks.

    Not every task allows every intervention: the memory of another task does not exist if all others that were tried
    are shorter. Such a task is left out. If fewer than two remain, interventions are left out instead.
    """
    if tasks < 2:
        raise SettingError(f"an interval needs at least 2 tasks, got {tasks}")
    played: list[dict[str, tuple[float, float]]] = []  # task → name → (return, changed actions)
    for seed in range(first_seed, first_seed + tasks):
        original = trace(player, seed)
        rows = {"unchanged": (float(original.reward.sum()), 0.0)}
        for found in counterfactuals(player, original, seed):
            rows[found.name.split(" at step")[0]] = float(found.returns[-1]), found.changed
        played.append(rows)
    names = list(dict.fromkeys(name for rows in played for name in rows))
    complete = [rows for rows in played if len(rows) == len(names)]
    if len(complete) < 2:
        names, complete = [n for n in names if all(n in rows for rows in played)], played
    found = {name: np.array([rows[name] for rows in complete]) for name in names}
    return [
        Effect(name, *_mean_and_margin(pairs[:, 0]), float(pairs[:, 1].mean()))
        for name, pairs in found.items()
    ]


def _mean_and_margin(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(1.96 * values.std(ddof=1) / math.sqrt(len(values)))


def _outcome(player: Player, original: Trace, task_seed: int, case: Intervention) -> Outcome:
    free = trace(player, task_seed, change=case.change)
    forced = trace(player, task_seed, change=case.change, actions=list(original.action))
    ends = np.cumsum(getattr(player.env.space, "sizes", ()), dtype=int)[:-1]
    distance = _distance(original, forced, ends)
    differs = np.any(_modes(original, ends) != _modes(forced, ends), axis=0)
    changed = float(differs.mean()) if original.spread is None else float(distance.mean())
    return Outcome(case.name, case.about, np.cumsum(free.reward), changed, distance)


def _distance(a: Trace, b: Trace, ends: np.ndarray) -> Float[np.ndarray, " T"]:
    """Returns the total variation distance δ of each step; of Gaussians, that between their means in deviations.

    If an action consists of several numbers with the distances δᵢ, it is 1 - Πᵢ(1 - δᵢ): the probability that some
    number differs if each of them differs as rarely as possible. `ends` are where the values of a number end.
    """
    if a.spread is None:
        parts = np.split(np.abs(a.probabilities - b.probabilities), ends, axis=1)
        each = [0.5 * part.sum(axis=1) for part in parts]
        return each[0] if len(each) == 1 else 1 - np.prod(1 - np.stack(each), axis=0)
    apart = np.abs(a.probabilities - b.probabilities) / a.spread
    return np.minimum(apart.mean(axis=1), 1).astype(np.float32)


def _modes(found: Trace, ends: np.ndarray) -> Int[np.ndarray, "numbers T"]:
    parts = np.split(found.probabilities, ends, axis=1)
    return np.stack([part.argmax(axis=1) for part in parts])


def _middle(original: Trace) -> int:
    ends = np.flatnonzero(original.episode_end)
    start = int(ends[-2]) + 1 if len(ends) > 1 else 0
    return (start + len(original.reward)) // 2
