"""Runs one analysis for all agents of a subject as one compiled program."""

import functools as ft
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from splagger.agent import Agent, Normalizers
from splagger.analysis.inputs import Inputs, meta_episode, noise
from splagger.analysis.options import Options
from splagger.analysis.subjects import Subject, keys_of
from splagger.analysis.table import Analysis
from splagger.envs import MetaEnv
from splagger.runs.analyses import Value, rows_of


def measure(
    analysis: Analysis, subject: Subject, options: Options
) -> tuple[list[Value], list[dict[str, Any]]]:
    """Returns the values of every agent, and a description of each agent's inputs."""
    keys = jnp.stack([keys_of(seed)[1] for seed in subject.seeds])
    agents = subject.agents, subject.normalizers
    with jax.default_matmul_precision("float32"):  # analyses measure small numbers
        values, inputs = jax.device_get(_measure_all(analysis, subject.env, options, agents, keys))
    rows, notes = [], []
    for index, seed in enumerate(subject.seeds):
        rows += rows_of(subject.method, seed, values[index], analysis.first_step)
        first = jax.tree.map(lambda leaf, i=index: leaf[i], inputs)
        notes.append({"method": subject.method, "seed": seed, **_notable_steps(first)})
    return rows, notes


@ft.partial(jax.jit, static_argnums=(0, 1, 2))
def _measure_all(analysis, env, options, agents, keys):
    return jax.vmap(ft.partial(_measure_agent, analysis, env, options))(agents, keys)


def _measure_agent(
    analysis: Analysis,
    env: MetaEnv,
    options: Options,
    agent_and_normalizers: tuple[Agent, Normalizers],
    key: Key[Array, ""],
):
    """Returns the values [steps, dimensions] of one agent, averaged over its sequences, and its first inputs."""
    agent, normalizers = agent_and_normalizers

    def one(index):
        input_key, measure_key = jr.split(jr.fold_in(key, index))
        if analysis.real or options.real:
            task_key = jr.key(options.task_seed + index)  # the same task for every agent
            length = env.horizon if analysis.real else options.length
            inputs = meta_episode(task_key, env, agent, normalizers, length)
        else:
            inputs = noise(input_key, agent.memory, options.length, options.independent)
        values = analysis.measure(agent.memory, inputs, measure_key, options)
        steps = jnp.arange(len(values)) + analysis.first_step
        return jnp.where((steps <= inputs.last)[:, None], values, analysis.afterwards), inputs

    values, inputs = jax.vmap(one)(jnp.arange(analysis.sequences))
    return jnp.nanmean(values, axis=0), jax.tree.map(lambda leaf: leaf[0], inputs)


def _notable_steps(inputs: Inputs) -> dict[str, Any]:
    """Returns the sequence's length, its episode ends and its signal steps."""
    length = int(inputs.last) + 1
    steps = lambda flags: np.flatnonzero(flags[:length]).tolist()  # noqa: E731
    return {
        "steps": length,
        "episode_ends": steps(inputs.episode_end),
        "signal_steps": steps(inputs.signal),
    }
