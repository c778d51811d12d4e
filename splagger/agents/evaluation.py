"""Evaluates a trained agent on new tasks."""

import functools as ft
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Key

from splagger.agent import Agent, Normalizers
from splagger.agents.player import Player, as_player
from splagger.bridges import unwrapped_errors
from splagger.envs import AbstractMetaEnv
from splagger.errors import SettingError
from splagger.ppo.evaluation import episode_returns
from splagger.ppo.train import FRESH_STREAM
from splagger.ranges import Integer, TaskSeed, check
from splagger.training.compiler import set_up_compiler

MOST_TASKS = 10_000_000


class Score(NamedTuple):
    """A mean over tasks, and half the width of its 95% interval."""

    mean: float
    margin: float
    tasks: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.margin:.3f}"


def evaluate(
    player: Player, tasks: int = 1000, seed: int = 0, explore: bool = False
) -> tuple[list[Score], Score]:
    """Plays new tasks; returns (score of each episode, score of the meta-episode).

    - `explore`: sample actions, as training does, instead of taking the most likely ones.
    """
    player = as_player(player)
    check("tasks", tasks, Integer)
    check("seed", seed, TaskSeed)
    if tasks < 2:
        raise SettingError(f"an interval needs at least 2 tasks, got {tasks}")
    if tasks > MOST_TASKS:
        raise SettingError(f"an evaluation has at most {MOST_TASKS:,} tasks, got {tasks:,}")
    env = player.environment("evaluating")
    set_up_compiler()
    batch = min(tasks, env.max_parallel)
    one, subject = _program(env, batch, explore), (player.agent, player.normalizers)
    keys = jr.split(jr.fold_in(jr.key(seed), FRESH_STREAM), -(-tasks // batch))
    with unwrapped_errors():
        returns = np.concatenate([np.asarray(one(*subject, key)) for key in keys])[:tasks]
    return [_score(column) for column in returns.T], _score(returns.sum(axis=1))


@ft.lru_cache(maxsize=4)
def _program(env: AbstractMetaEnv, batch: int, explore: bool) -> Callable:
    """Returns the compiled evaluation on `batch` tasks; agents with the same layers share it."""

    def one(agent: Agent, normalizers: Normalizers, key: Key[Array, ""]):
        return episode_returns(env, agent, normalizers, batch, key, explore)

    return jax.jit(one)


def _score(values: np.ndarray) -> Score:
    margin = 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    return Score(float(values.mean()), float(margin), len(values))
