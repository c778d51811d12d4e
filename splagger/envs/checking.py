"""A check of JAX environments: one abstract trace finds mistakes before anything is compiled or written."""

import functools as ft
import traceback
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr

from splagger.envs.meta import MetaEnv
from splagger.envs.protocol import Env, Step
from splagger.errors import FOREIGN_ERRORS, EnvError

LIBRARIES = tuple(str(Path(module.__file__ or "").parent) for module in (jax, jnp))


@ft.cache
def check_env(env: Any) -> None:
    """Raises an `EnvError` that names what is wrong with `sample_task`, `reset` or `step`, if anything is.

    - `env`: an `Env`, or a `MetaEnv` with one.
    """
    env = env.env if isinstance(env, MetaEnv) else env
    key, action = jax.eval_shape(lambda: jr.key(0)), jax.eval_shape(env.spec.space.zero)
    try:
        task = _traced(env, "sample_task", key)
        state, obs = _pair(env, "reset", "(state, observation)", _traced(env, "reset", key, task))
        _check_shape(env, "reset()'s observation", obs, (env.spec.obs_size,))
        stepped = _traced(env, "step", key, task, state, action)
    except ImportError:  # of a simulator; a run can be planned without it
        return
    after, step = _pair(env, "step", "(state, Step)", stepped)
    if not isinstance(step, Step):
        raise _error(
            env, f"step() must return (state, splagger.envs.Step), got {type(step).__name__}"
        )
    _check_shape(env, "step()'s observation", step.obs, (env.spec.obs_size,))
    _check_shape(env, "the reward", step.reward, ())
    for field in ("terminated", "truncated"):
        flag = getattr(step, field)
        _check_shape(env, field, flag, ())
        if flag.dtype != jnp.bool_:
            raise _error(env, f"{field} must be a boolean, got {flag.dtype}")
    _check_state(env, state, after)


def _traced(env: Env, name: str, *args: Any) -> Any:
    """Returns the shapes of a method's result. Errors are reported with the line of the environment."""
    try:
        return jax.eval_shape(getattr(env, name), *args)
    except (ImportError, EnvError):
        raise
    except FOREIGN_ERRORS as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if not f.filename.startswith(LIBRARIES) and f.filename != __file__]
        at = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
        reason = str(error).partition("\n")[0]
        raise _error(env, f"{name}() raised {type(error).__name__}: {reason}{at}") from error


def _pair(env: Env, name: str, expected: str, returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise _error(env, f"{name}() must return {expected}")
    return returned


def _check_shape(env: Env, what: str, array: Any, shape: tuple[int, ...]) -> None:
    found = getattr(array, "shape", None)
    if found != shape:
        size = " (spec.obs_size)" if shape else ""
        raise _error(env, f"{what} must have shape {shape}{size}, got {found}")


def _check_state(env: Env, before: Any, after: Any) -> None:
    """Checks that a step keeps the structure, shapes and types of the state, because a scan carries it."""
    (first, tree), (second, other) = map(jax.tree_util.tree_flatten_with_path, (before, after))
    if tree != other:
        raise _error(env, f"step() changes the structure of the state from {tree} to {other}")
    for (path, a), (_, b) in zip(first, second, strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            change = f"from {a.dtype}{list(a.shape)} to {b.dtype}{list(b.shape)}"
            raise _error(env, f"step() changes state{jax.tree_util.keystr(path)} {change}")


def _error(env: Env, problem: str) -> EnvError:
    return EnvError(f"{env.spec.name}: {problem}")
