"""One meta-episode, step by step: what the agent sees, expects, does and remembers."""

import functools as ft
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from splagger.agent import Agent, Normalizers
from splagger.agents.player import Player
from splagger.analysis.inputs import shows_signal
from splagger.analysis.latents import holds_a_belief
from splagger.analysis.remember import held_over_time, holds_maxima, maximum_of
from splagger.bridges import unwrapped_errors
from splagger.memory import Memory, SequenceModel, Transition
from splagger.policy.distributions import Categorical, ProductOfCategoricals
from splagger.ppo.train import FRESH_STREAM, NOISE_STREAM

_held = jax.jit(held_over_time, static_argnums=2)


class Trace(NamedTuple):
    """A meta-episode of T steps. Row t is the moment of the t-th action: the memory holds t transitions.

    `set_by` is None for memories without maxima and for changed ones, `variance` for memories without a belief.
    """

    obs: Float[np.ndarray, "T obs"]
    action: np.ndarray  # [T], or [T, dimensions] for continuous actions
    probabilities: Float[np.ndarray, "T A"]  # of each action, or the mean of a continuous one
    spread: Float[np.ndarray, "T A"] | None  # standard deviations of a continuous action
    value: Float[np.ndarray, " T"]  # the critic's, in units of scaled rewards
    reward: Float[np.ndarray, " T"]  # of the t-th action
    episode_end: Bool[np.ndarray, " T"]
    signal: Bool[np.ndarray, " T"]  # whether the observation shows the task's signal
    neurons: Float[np.ndarray, "T D"]  # the first `skip` bypass the aggregator
    skip: int
    set_by: Int[np.ndarray, "T M"] | None  # the step that set each maximum, -1 for none
    output: Float[np.ndarray, "T out"]  # of the memory
    latent: Float[np.ndarray, "T Z"]  # the policy's input
    variance: Float[np.ndarray, "T V"] | None  # of the belief
    memories: list[Memory]  # before each action
    frames: list[np.ndarray]  # pictures [H, W, 3] of each state, if they were drawn


class Change(NamedTuple):
    """An intervention on an agent's memory.

    - `recall(step, memory, past)` returns the memory that the agent acts on; `past` holds all transitions so far.
    - `absorb(transition)` returns the transition that the memory receives.
    """

    recall: Callable[[int, Memory, Sequence[Transition]], Memory] = lambda _, memory, past: memory
    absorb: Callable[[Transition], Transition] = lambda transition: transition


class _Row(NamedTuple):
    """One step of a trace."""

    obs: Any
    action: Any
    probabilities: Any
    spread: Any
    value: Any
    latent: Any
    output: Any
    neurons: Any
    reward: Any = None
    episode_end: Any = None
    encoding: Any = None


@unwrapped_errors()
def trace(
    player: Player,
    task_seed: int = 0,
    draw: bool = False,
    change: Change | None = None,
    actions: Sequence[Any] | None = None,
) -> Trace:
    """Plays the most likely actions for one meta-episode and returns all that happens.

    - `task_seed`: the seed of the task; `splagger watch` plays the same tasks.
    - `draw`: also draws every state.
    - `change`: an intervention on the memory.
    - `actions`: actions to take instead of the agent's. The trace still has the agent's probabilities.
    """
    env: Any = player.environment("inspecting")
    env = env.to_render() if draw else env
    agent, unchanged, change = player.agent, change is None, change or Change()
    model, memory = _prepared(agent)
    key, reset_key = jr.split(jr.fold_in(jr.key(task_seed), FRESH_STREAM))
    # Independent of the environment's keys.
    latent_key = jr.fold_in(jr.key(task_seed), NOISE_STREAM)
    state = _reset(env, reset_key)
    neurons = first_neurons(model)
    rows, memories, frames, past, done = [], [], [], [], False
    while not done:
        if draw:
            frames.append(np.asarray(env.render(jax.device_get(state))))
        memory = change.recall(len(rows), memory, past)
        memories.append(memory)
        key, step_key = jr.split(key)
        noise_key = jr.fold_in(latent_key, len(rows))
        row = _decide(agent, memory, state.obs, noise_key, player.normalizers)
        action = row.action if actions is None else jnp.asarray(actions[len(rows)])
        before = state.obs
        state, out = _step(env, step_key, state, action)
        done = bool(out.task_done)
        transition = Transition(before, action, out.reward, out.next_obs if done else state.obs)
        past.append(transition)
        memory, encoding, after = _remember(model, memory, change.absorb(transition))
        known = {"action": action, "neurons": neurons, "encoding": encoding}
        rows.append(row._replace(**known, reward=out.reward, episode_end=out.episode_done))
        neurons = after
    found = _stack(env, model, jax.device_get(rows), memories, frames)
    return found if unchanged else found._replace(set_by=None)


@jax.jit
def _prepared(agent: Agent) -> tuple[SequenceModel, Memory]:
    """Returns the memory's model for many steps, and an empty memory."""
    actor = agent.actor()
    return actor.memory, actor.empty


# The environment is static, so that all traces share one compiled program.
@ft.partial(jax.jit, static_argnums=0)
def _reset(env, key):
    return env.reset(key)


@ft.partial(jax.jit, static_argnums=0)
def _step(env, key, state, action):
    return env.step(key, state, action)


@jax.jit
def _decide(agent: Agent, memory: Memory, obs, key, normalizers: Normalizers) -> _Row:
    """Returns the distribution over actions, the most likely action and the value."""
    noise = agent.sample_noise(*jr.split(key)).latent
    latent = agent.latent(memory.output, noise, normalizers.output)
    distribution, value = agent.policy_and_value(memory.output, obs, noise, normalizers)
    if isinstance(distribution, Categorical):
        numbers, spread = jax.nn.softmax(distribution.logits), None
    elif isinstance(distribution, ProductOfCategoricals):
        numbers, spread = distribution.probabilities(), None
    else:
        numbers, spread = distribution.mean, distribution.std
    return _Row(obs, distribution.mode(), numbers, spread, value, latent, memory.output, None)


@jax.jit
def _remember(model: SequenceModel, memory: Memory, transition: Transition):
    """Returns (memory, encoding, neurons) after one more transition; the memory equals that of `model.step`."""
    encoder, e = model.encoder.step(memory.encoder, model.embedding(transition), False)
    aggregate, neurons = model.aggregation.step(memory.aggregate, e, False)
    return Memory(encoder, aggregate, model.projection(neurons)), e, neurons


def first_neurons(model: SequenceModel) -> Float[Array, " D"]:
    """Returns the neurons before the first transition: those of one all-zero input, see `SequenceModel.start`."""
    _, e = model.encoder.step(model.encoder.start(), jnp.zeros(model.encoder.input_size), False)
    return model.aggregation.step(model.aggregation.start(), e, False)[1]


def _stack(env, model: SequenceModel, rows: list[_Row], memories, frames) -> Trace:
    """Returns the rows as arrays, with everything that follows from them."""
    columns = {
        name: np.stack(values) if values[0] is not None else None
        for name, values in zip(_Row._fields, zip(*rows, strict=True), strict=True)
    }
    encodings: Any = columns.pop("encoding")
    outputs: Any = columns["output"]
    belief = holds_a_belief(model)
    return Trace(
        **columns,
        signal=np.asarray(jax.vmap(ft.partial(shows_signal, env))(columns["obs"])),
        skip=model.aggregation.skip,
        set_by=_set_by(model, encodings) if holds_maxima(model) else None,
        variance=np.exp(np.split(outputs, 2, axis=1)[1]) if belief else None,
        memories=memories,
        frames=frames,
    )


def _set_by(model: SequenceModel, encodings) -> Int[np.ndarray, "T M"]:
    """Returns the step that set each maximum, before each action."""
    resets = jnp.zeros(len(encodings), bool)
    aggregated = jnp.asarray(encodings[:, model.aggregation.skip :])
    held = _held(aggregated, resets, maximum_of(model).floor)
    steps = np.asarray(held.step)
    return np.concatenate([np.full_like(steps[:1], -1), steps[:-1]])
