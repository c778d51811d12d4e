"""The three ways in which a Gymnasium environment can be given a task, each a function (env, seed, episode) →
what `reset` returned. The seed stands for the whole task; episodes of one task count from 0."""

import functools as ft
from collections.abc import Callable
from typing import Any

import numpy as np

from splagger.envs.places import find


def by_seed(env: Any, seed: int, episode: int) -> Any:
    """The seed is the task: every episode of it is `reset(seed=seed)`."""
    return env.reset(seed=seed)


def by_method(env: Any, seed: int, episode: int) -> Any:
    """`sample_task()` draws a task, which the environment keeps until it is called again."""
    if episode == 0:
        env.reset(seed=seed)
        env.get_wrapper_attr("sample_task")()
    return env.reset(seed=_episode_seed(seed, episode))


def by_options(draw: Callable[..., Any], env: Any, seed: int, episode: int) -> Any:
    """`draw(rng)` is the task, and every episode of it begins with `reset(options={"task": task})`."""
    task = draw(np.random.default_rng(seed))
    return env.reset(seed=_episode_seed(seed, episode), options={"task": task})


# how tasks are drawn, by name; anything else is a function rng → task
TASKS: dict[str, Callable[..., Any]] = {"seed": by_seed, "sample_task": by_method}


def drawing(name: str, task: str | Callable[..., Any], env: Any) -> Callable[..., Any]:
    """The way in which this environment draws its tasks."""
    if callable(task):
        return ft.partial(by_options, task)
    if task == "auto":
        return by_method if env.has_wrapper_attr("sample_task") else by_seed
    if task in TASKS:
        return TASKS[task]
    if ":" not in task:
        raise ValueError(
            f"{name}: task must be auto, {', '.join(TASKS)} or a function (package.module:function), "
            f"got {task!r}"
        )
    try:
        return ft.partial(by_options, find(task))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name}: the task function cannot be found ({error})") from None


def _episode_seed(seed: int, episode: int) -> int:
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0] >> 1)
