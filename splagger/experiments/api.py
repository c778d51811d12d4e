"""The library's verbs: train, load, evaluate, watch."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.random as jr
import numpy as np

from splagger.envs import plain_failures
from splagger.experiments.compiler import set_up_compiler
from splagger.experiments.grid import Number, Run
from splagger.experiments.loading import load as load
from splagger.experiments.loading import save_agent as save_agent
from splagger.experiments.player import Player
from splagger.experiments.runner import execute
from splagger.methods import Method
from splagger.ppo.evaluate import episode_returns
from splagger.ppo.train import FRESH_STREAM
from splagger.recorded import RecordedRun, RunError
from splagger.registry import PAPER_RATES

if TYPE_CHECKING:
    import pandas


def train(
    env: Any,
    method: str | Method,
    rates: Number | Sequence[Number] = PAPER_RATES,
    seeds: int | Sequence[int] = 3,
    frames: Number | None = None,
    out: str | Path = "runs",
    settings: Mapping[str, Any] | None = None,
    force: bool = False,
    show: bool = True,
    save_every: Number = 120.0,
    episodes: int | None = None,
    entropy_weights: Number | Sequence[Number] = (),
    kl_weights: Number | Sequence[Number] = (),
    temperatures: Number | Sequence[Number] = (),
) -> "pandas.DataFrame":
    """Trains all rates × seeds in one program and returns the curves, one line an evaluation and run.

    `env` is a name, a row, or an environment: of our protocol, or from `splagger.envs.from_gymnasium`
    or `from_gymnax`. A finished run is not trained again, an interrupted one goes on. `settings` are overrides such as
    {"ppo.entropy": 0}; entropy_weights, kl_weights and temperatures are swept like rates. `episodes` are those of a
    task, `save_every` the seconds between checkpoints. The folder is in the frame's `attrs["folder"]`: pass it to
    `load`.
    """
    grids = entropy_weights, kl_weights, temperatures
    run = Run.create(env, method, rates, seeds, frames, settings, *grids, episodes)
    folder, _ = execute(run, out, force, save_every, show)
    return curves(folder.path)


def curves(path: str | Path) -> "pandas.DataFrame":
    """The curves of a run folder."""
    import pandas

    run = RecordedRun(path)
    run.read()  # tells what is no run folder
    try:
        frame = pandas.read_csv(run.curves)
    except (FileNotFoundError, pandas.errors.EmptyDataError):
        raise RunError(f"{path} has not got to its first evaluation yet") from None
    frame.attrs["folder"] = str(path)
    return frame


class Score(NamedTuple):
    """Mean and half-width of the 95% interval, over tasks."""

    mean: float
    margin: float
    tasks: int


def evaluate(player: Player, tasks: int = 1000, seed: int = 0) -> tuple[list[Score], Score]:
    """(score of each episode, score of the meta-episode) on fresh tasks, with the most likely actions."""
    if tasks < 2:
        raise ValueError(f"an interval needs at least 2 tasks, got {tasks}")
    set_up_compiler()
    batch = min(tasks, player.env.crowd)
    one = jax.jit(
        lambda key: episode_returns(player.env, player.agent, player.normalizers, batch, key)
    )
    keys = jr.split(jr.fold_in(jr.key(seed), FRESH_STREAM), -(-tasks // batch))
    with plain_failures():
        returns = np.concatenate([np.asarray(one(key)) for key in keys])[:tasks]
    return [_score(column) for column in returns.T], _score(returns.sum(axis=1))


def _score(values: np.ndarray) -> Score:
    margin = 1.96 * values.std(ddof=1) / math.sqrt(len(values))
    return Score(float(values.mean()), float(margin), len(values))


@plain_failures()
def watch(player: Player, path: str | Path, seed: int = 0, fps: int = 15) -> float:
    """Writes a GIF of the agent living through one meta-episode; returns what it earned."""
    from PIL import Image

    env, total = player.env.to_render(), 0.0
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
    pictures = [Image.fromarray(frame).quantize(64) for frame in frames]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=1000 // fps, loop=0)
    return total
