"""Three ways to give a Gymnasium environment a task, each a function (env, seed, episode) → result of `reset`.

The seed determines the whole task. The episodes of a task are numbered from 0.
"""

import functools as ft
from collections.abc import Callable
from typing import Any

import numpy as np

from splagger.bridges.importing import import_object
from splagger.errors import SettingError


def by_seed(env: Any, seed: int, episode: int) -> Any:
    """Uses the seed as the task: every episode starts with `reset(seed=seed)`."""
    return env.reset(seed=seed)


def by_method(env: Any, seed: int, episode: int) -> Any:
    """Calls the environment's `sample_task()` before the first episode; the environment keeps that task."""
    if episode == 0:
        env.reset(seed=seed)
        env.get_wrapper_attr("sample_task")()
    return env.reset(seed=_episode_seed(seed, episode))


def by_options(sample: Callable[..., Any], env: Any, seed: int, episode: int) -> Any:
    """Samples the task with `sample(rng)`; every episode starts with `reset(options={"task": task})`."""
    task = sample(np.random.default_rng(seed))
    return env.reset(seed=_episode_seed(seed, episode), options={"task": task})


# name → task sampler; any other task is a function rng → task
TASK_SAMPLERS: dict[str, Callable[..., Any]] = {"seed": by_seed, "sample_task": by_method}


def task_sampler(name: str, task: str | Callable[..., Any], env: Any) -> Callable[..., Any]:
    """Returns the function that starts an episode of a task in this environment."""
    if callable(task):
        return ft.partial(by_options, task)
    if task == "auto":
        return by_method if env.has_wrapper_attr("sample_task") else by_seed
    if task in TASK_SAMPLERS:
        return TASK_SAMPLERS[task]
    if ":" not in task:
        raise SettingError(
            f"{name}: task must be auto, {', '.join(TASK_SAMPLERS)} or a function (package.module:function), "
            f"got {task!r}"
        )
    return ft.partial(by_options, import_object(task, f"{name}: the task function"))


def _episode_seed(seed: int, episode: int) -> int:
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0] >> 1)
