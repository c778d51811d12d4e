"""Interventions on a memory: flip the signal, shuffle the transitions, freeze a part of it, empty it, transplant it."""

import functools as ft
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.agents.player import Player
from splagger.analysis.permutation import prefix_permutation
from splagger.envs import EndlessTMaze, MineMaze, TMaze
from splagger.inspection.trace import Change, Trace, first_neurons, trace
from splagger.memory import Memory, SequenceModel, Transition
from splagger.nn import Linear

OTHER_TASKS = 4  # from which the memory of the most different one is transplanted


class Intervention(NamedTuple):
    """An intervention with its name and a sentence about it."""

    name: str
    about: str
    change: Change


def interventions(
    player: Player, original: Trace, task_seed: int, cut: int
) -> Iterator[Intervention]:
    """Yields the interventions that this environment allows; those at one step happen before step `cut`."""
    flip = flip_signal(player.env)
    if flip is not None and original.signal.any():
        one = _flips_one(getattr(player.env, "env", None))
        yield Intervention(
            "first signal flipped" if one else "signal flipped",
            f"The memory receives the opposite {'first signal of each episode' if one else 'signal'}.",
            Change(absorb=flip),
        )
    yield Intervention(
        "order shuffled",
        "Before each action, the memory is made again from all transitions in a random order.",
        Change(recall=_shuffled(player, task_seed)),
    )
    yield from _frozen_parts(player.agent.memory)
    empty = player.agent.start()
    yield Intervention(
        f"memory emptied at step {cut}",
        "The memory forgets everything once.",
        Change(recall=lambda step, memory, past: empty if step == cut else memory),
    )
    other = _other(player, original, task_seed, cut)
    if other is not None:
        yield Intervention(
            f"memory of another task at step {cut}",
            "The memory is replaced once by that of the same agent in another task.",
            Change(recall=lambda step, memory, past: other if step == cut else memory),
        )


def _frozen_parts(model: SequenceModel) -> Iterator[Intervention]:
    """Yields one intervention for each of the two parts of a split memory; nothing for other memories."""
    aggregation, projection = model.aggregation, model.projection
    if not (0 < aggregation.skip < aggregation.width and isinstance(projection, Linear)):
        return
    weight = projection.weight[:, aggregation.skip :]
    first = weight @ first_neurons(model)[aggregation.skip :]

    def seen(step, memory):
        """The part of the output that comes from the aggregator."""
        return first if step == 0 else weight @ aggregation.aggregator.read(memory.aggregate)

    def without_aggregate(step, memory, past):
        return memory._replace(output=memory.output - seen(step, memory) + first)

    def without_bypass(step, memory, past):
        return memory._replace(output=seen(step, memory) + projection.bias)

    yield Intervention(
        "aggregate frozen",
        "The policy sees the aggregated neurons as they were before the first transition.",
        Change(recall=without_aggregate),
    )
    yield Intervention(
        "bypass frozen",
        "The policy sees zeros in place of the neurons that bypass the aggregator.",
        Change(recall=without_bypass),
    )


def _other(player: Player, original: Trace, task_seed: int, cut: int) -> Memory | None:
    """Returns the memory before step `cut` of that of some other tasks in which its output differs most."""
    found = [trace(player, (task_seed + 1 + i) % 2**31) for i in range(OTHER_TASKS)]
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


def flip_signal(env: Any) -> Callable[[Transition], Transition] | None:
    """Returns a function that replaces the signal in a transition; None for environments without signals.

    If an episode has several signals, the function must see all transitions of a meta-episode in their order.
    """
    inner = getattr(env, "env", None)
    if _flips_one(inner):
        return _flip_first(inner)
    if isinstance(inner, TMaze | EndlessTMaze):
        flipped = lambda obs: obs.at[1].multiply(-1.0)  # noqa: E731
    elif isinstance(inner, MineMaze):
        flipped = ft.partial(_other_color, inner)
    else:
        return None
    return jax.jit(lambda t: t._replace(obs=flipped(t.obs), next_obs=flipped(t.next_obs)))


def _flips_one(env: Any) -> bool:
    """Whether only one signal of an episode is flipped: with all of an even number, the same door would be correct."""
    return isinstance(env, TMaze) and len(env.signals) > 0 and len(env.signals) % 2 == 0


def _flip_first(maze: TMaze) -> Callable[[Transition], Transition]:
    """Returns a function that flips the first signal of each episode. It counts the steps of an episode."""
    first, position = min(maze.signals), 0

    def seen(obs, cell: int):
        return obs.at[1].multiply(-1.0) if cell == first else obs

    def absorb(transition: Transition) -> Transition:
        nonlocal position
        starts = transition.obs[0] == 1, transition.next_obs[0] == 1
        before = 0 if starts[0] else position
        position = 0 if starts[1] else min(before + 1, maze.length - 1)
        obs, next_obs = seen(transition.obs, before), seen(transition.next_obs, position)
        return transition._replace(obs=obs, next_obs=next_obs)

    return absorb


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
