"""Three ways to give a Gymnasium environment a task, each a function (env, seed, episode, options) → result of `reset`.

The seed determines the whole task. The episodes of a task are numbered from 0. Training gives no `options`; those of a
caller go to each `reset`.
"""

import functools as ft
from collections.abc import Callable
from typing import Any

import numpy as np

from splagger.bridges.importing import import_object
from splagger.errors import EnvError, SettingError

Options = dict[str, Any] | None


def by_seed(env: Any, seed: int, episode: int, options: Options = None) -> Any:
    """Uses the seed as the task: every episode starts with `reset(seed=seed)`."""
    return _reset(env, seed, options)


def by_method(env: Any, seed: int, episode: int, options: Options = None) -> Any:
    """Calls the environment's `sample_task()` before the first episode; the environment keeps that task."""
    if episode == 0:
        env.reset(seed=seed)
        task = env.get_wrapper_attr("sample_task")()
        if task is not None:
            raise EnvError(
                f"sample_task() of {type(env.unwrapped).__name__} must make the task the environment's own and return "
                f"nothing, but it returned {task!r:.60}; let it do so, or pass a function rng → task as task=…"
            )
    return _reset(env, _episode_seed(seed, episode), options)


def by_options(
    sample: Callable[..., Any], env: Any, seed: int, episode: int, options: Options = None
) -> Any:
    """Samples the task with `sample(rng)`; every episode starts with `reset(options={"task": task})`."""
    if options is None:
        options = {"task": sample(np.random.default_rng(seed))}
    return _reset(env, _episode_seed(seed, episode), options)


def _reset(env: Any, seed: int, options: Options) -> Any:
    """Resets the environment; one whose tasks are no options need not know of them."""
    return env.reset(seed=seed) if options is None else env.reset(seed=seed, options=options)


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
