"""What the memory is worth: the same task with a memory that was changed.

Each intervention is played twice. Played freely, it shows how the return changes. Along the path of the unchanged
agent, it shows at every step how much the distribution over actions changes.
"""

import functools as ft
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float

from splagger.agents.player import Player
from splagger.analysis.permutation import prefix_permutation
from splagger.envs import MineMaze, TMaze
from splagger.errors import SettingError
from splagger.inspection.trace import Change, Trace, trace
from splagger.memory import Memory, SequenceModel, Transition

OTHER_TASKS = 4  # from which the memory of the most different one is transplanted


class Outcome(NamedTuple):
    """The effect of one intervention."""

    name: str
    about: str
    returns: Float[np.ndarray, " S"]  # cumulative, of an agent that acts with the changed memory
    changed: (
        float  # the fraction of steps on the unchanged path at which the most likely action differs
    )
    distance: Float[
        np.ndarray, " T"
    ]  # between both distributions over actions on the unchanged path, 0 to 1


class Counterfactual(NamedTuple):
    """An intervention with its name and a sentence about it."""

    name: str
    about: str
    change: Change


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
        for case in _cases(player, original, task_seed, cut)
    ]


def _cases(player: Player, original: Trace, task_seed: int, cut: int) -> Iterator[Counterfactual]:
    flip = _flip(player.env)
    if flip is not None and original.signal.any():
        yield Counterfactual(
            "signal flipped",
            "The memory receives the opposite signal.",
            Change(absorb=flip),
        )
    yield Counterfactual(
        "order shuffled",
        "Before each action, the memory is made again from all transitions in a random order.",
        Change(recall=_shuffled(player, task_seed)),
    )
    empty = player.agent.start()
    yield Counterfactual(
        f"memory emptied at step {cut}",
        "The memory forgets everything once.",
        Change(recall=lambda step, memory, past: empty if step == cut else memory),
    )
    other = _other(player, original, task_seed, cut)
    if other is not None:
        yield Counterfactual(
            f"memory of another task at step {cut}",
            "The memory is replaced once by that of the same agent in another task.",
            Change(recall=lambda step, memory, past: other if step == cut else memory),
        )


def _outcome(player: Player, original: Trace, task_seed: int, case: Counterfactual) -> Outcome:
    free = trace(player, task_seed, change=case.change)
    forced = trace(player, task_seed, change=case.change, actions=list(original.action))
    distance = _distance(original, forced)
    differs = _modes(original) != _modes(forced)
    changed = float(differs.mean()) if original.spread is None else float(distance.mean())
    return Outcome(case.name, case.about, np.cumsum(free.reward), changed, distance)


def _distance(a: Trace, b: Trace) -> Float[np.ndarray, " T"]:
    """Returns the total variation distance of each step; of Gaussians, that between their means in deviations."""
    if a.spread is None:
        return 0.5 * np.abs(a.probabilities - b.probabilities).sum(axis=1)
    apart = np.abs(a.probabilities - b.probabilities) / a.spread
    return np.minimum(apart.mean(axis=1), 1).astype(np.float32)


def _modes(found: Trace) -> np.ndarray:
    return found.probabilities.argmax(axis=1)


def _middle(original: Trace) -> int:
    ends = np.flatnonzero(original.episode_end)
    start = int(ends[-2]) + 1 if len(ends) > 1 else 0
    return (start + len(original.reward)) // 2


def _other(player: Player, original: Trace, task_seed: int, cut: int) -> Memory | None:
    """Returns the memory before step `cut` of that of some other tasks in which its output differs most."""
    found = [trace(player, task_seed + 1 + index) for index in range(OTHER_TASKS)]
    memories = [other.memories[cut] for other in found if cut < len(other.memories)]
    here = original.memories[cut].output
    return max(memories, key=lambda m: float(jnp.linalg.norm(m.output - here)), default=None)


def _shuffled(player: Player, seed: int) -> Callable[..., Memory]:
    """Returns a `recall` that encodes the past in a random order, which is drawn again at every step."""
    model, start = player.agent.memory, player.agent.start()
    buffer: list[Transition] = []  # all transitions so far, padded to the longest meta-episode

    def recall(step: int, memory: Memory, past: Sequence[Transition]) -> Memory:
        if step < 2:
            buffer.clear()
            return memory
        if not buffer:
            size = player.env.horizon
            buffer.append(jax.tree.map(lambda leaf: np.stack([leaf] * size), past[0]))
        for whole, leaf in zip(buffer[0], past[-1], strict=True):
            whole[step - 1] = leaf
        key = jr.fold_in(jr.key(seed), step)
        return _encoded_again(model, start, jax.tree.map(jnp.asarray, buffer[0]), key, step)

    return recall


@jax.jit
def _encoded_again(model: SequenceModel, start: Memory, past: Transition, key, step) -> Memory:
    """Returns the memory of the first `step` transitions in a random order."""
    order = prefix_permutation(key, step - 1, len(past.reward))

    def absorb(memory, inputs):
        index, transition = inputs
        new, _ = model.step(memory, transition, False)
        return jax.tree.map(lambda n, m: jnp.where(index < step, n, m), new, memory), None

    shuffled = jax.tree.map(lambda leaf: leaf[order], past)
    return jax.lax.scan(absorb, start, (jnp.arange(len(past.reward)), shuffled))[0]


def _flip(env: Any) -> Callable[[Transition], Transition] | None:
    """Returns a function that replaces the signal in a transition; None for environments without signals."""
    inner = getattr(env, "env", None)
    if isinstance(inner, TMaze):
        flipped = lambda obs: obs.at[1].multiply(-1.0)  # noqa: E731
    elif isinstance(inner, MineMaze):
        flipped = ft.partial(_other_color, inner)
    else:
        return None
    return jax.jit(lambda t: t._replace(obs=flipped(t.obs), next_obs=flipped(t.next_obs)))


def _other_color(maze: MineMaze, obs):
    """Replaces the image of a green signal by that of a red one, and the other way around."""
    size = maze.spec.obs_size
    state, _ = maze.reset(jr.key(0), jnp.asarray(True))
    green, red = (maze.observe(jnp.asarray(color), state) for color in (True, False))
    image = obs[:size]
    flipped = jnp.where(
        jnp.all(image == green), red, jnp.where(jnp.all(image == red), green, image)
    )
    return obs.at[:size].set(flipped)
