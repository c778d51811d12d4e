"""Evaluates a trained agent on new tasks, and records it as a GIF."""

import math
from pathlib import Path
from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np

from splagger.agents.player import Player
from splagger.bridges import unwrapped_errors
from splagger.errors import RunError, SettingError
from splagger.files.storage import writing
from splagger.ppo.evaluation import episode_returns
from splagger.ppo.train import FRESH_STREAM
from splagger.training.compiler import set_up_compiler

MOST_TASKS = 10_000_000


class Score(NamedTuple):
    """A mean over tasks, and half the width of its 95% interval."""

    mean: float
    margin: float
    tasks: int


def evaluate(player: Player, tasks: int = 1000, seed: int = 0) -> tuple[list[Score], Score]:
    """Plays the most likely actions on new tasks; returns (score of each episode, score of the meta-episode)."""
    if tasks < 2:
        raise SettingError(f"an interval needs at least 2 tasks, got {tasks}")
    if tasks > MOST_TASKS:
        raise SettingError(f"an evaluation has at most {MOST_TASKS:,} tasks, got {tasks:,}")
    _check_seed("seed", seed)
    env = player.environment("evaluating")
    set_up_compiler()
    batch = min(tasks, env.max_parallel)
    one = jax.jit(lambda key: episode_returns(env, player.agent, player.normalizers, batch, key))
    keys = jr.split(jr.fold_in(jr.key(seed), FRESH_STREAM), -(-tasks // batch))
    with unwrapped_errors():
        returns = np.concatenate([np.asarray(one(key)) for key in keys])[:tasks]
    return [_score(column) for column in returns.T], _score(returns.sum(axis=1))


def _score(values: np.ndarray) -> Score:
    margin = 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    return Score(float(values.mean()), float(margin), len(values))


def _check_seed(name: str, seed: int) -> None:
    if not 0 <= seed < 2**31:
        raise SettingError(f"{name} must be between 0 and 2³¹ - 1, got {seed}")


def _check_picture(path: Path) -> None:
    """Raises before an agent plays if a GIF cannot be written there."""
    if path.suffix.lower() != ".gif":
        raise SettingError(f"the name of the picture must end with .gif, got {path}")
    if path.is_dir():
        raise SettingError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise RunError(f"cannot write {path} (there is no folder {path.parent})")


@unwrapped_errors()
def watch(player: Player, path: str | Path, seed: int = 0, fps: int = 15) -> float:
    """Writes a GIF of one meta-episode; returns the agent's cumulative return."""
    from PIL import Image

    _check_picture(Path(path))
    _check_seed("task_seed", seed)
    env, total = player.environment("watching").to_render(), 0.0
    step = jax.jit(env.step)
    key, reset_key = jr.split(jr.fold_in(jr.key(seed), FRESH_STREAM))
    state = jax.jit(env.reset)(reset_key)
    player.reset()
    frames, done = [env.render(state)], False
    while not done:
        key, step_key = jr.split(key)
        action = player.act(state.obs)
        state, out = step(step_key, state, jax.numpy.asarray(action))
        done = bool(out.task_done)
        player.observe(action, float(out.reward), out.next_obs if done else state.obs, done)
        total += float(out.reward)
        if not done:
            frames.append(env.render(jax.device_get(state)))
    images = [Image.fromarray(frame).quantize(64) for frame in frames]
    with writing(path):
        images[0].save(path, save_all=True, append_images=images[1:], duration=1000 // fps, loop=0)
    return total
