"""Loads trained agents from run folders, from files with one agent each, or from the zoo."""

import functools as ft
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from splagger.agents.exports import load_file
from splagger.agents.player import Player
from splagger.agents.recreate import matching, recreate
from splagger.errors import RunError
from splagger.runs.checkpoints import Checkpoint, restore_checkpoint
from splagger.runs.folder import find_run
from splagger.runs.run import Number, Point
from splagger.training.program import compile_grid
from splagger.zoo import locate


def load(
    path: str | Path,
    rate: float | None = None,
    seed: int | None = None,
    env: Any = None,
    method: Any = None,
    trust: bool = False,
    **settings: Number,
) -> Player:
    """Loads a trained agent from a run folder, from a file that `save_agent` wrote, or from the zoo.

    - `path`: a file, a run folder, a folder with only one run folder below it, or a name that `splagger zoo` lists,
      such as "t-ls/splagger". A file or folder of that name comes first.
    - `rate`, `seed`: select a member; by default the one with the highest final return.
    - `env`, `method`: what the agent was trained with, if that is not in `ENVS` and `METHODS`.
    - `trust`: import and call what the folder or file names: environments such as "gym:module:function", and methods
      such as "module:name". Without it, loading runs no code that is not part of this package.
    - `settings`: select by other axes: entropy_weight, kl_weight, temperature.

    An agent from a file acts without its environment. Evaluating and watching it needs `env` or `trust`.
    """
    wanted: dict[str, Number | None] = {"rate": rate, "seed": seed} | settings
    path = locate(path)
    if path.is_file():
        return load_file(path, wanted, env, method, trust)
    trained = _Trained(path, env, method, trust)
    return trained.player(trained.best(wanted))


def load_seeds(path: str | Path, trust: bool = False) -> list[Player]:
    """Loads the best agent and all agents that differ from it only in their seed, but none that diverged.

    `trust` is that of `load`.
    """
    path = locate(path)
    if path.is_file():
        return [load(path, trust=trust)]
    trained = _Trained(path, trust=trust)
    best = trained.run.points[trained.best({})]
    seeds = [best._replace(seed=seed) for seed in trained.run.seeds]
    alike = [p for p in seeds if p == best or trained.diverged(p) is None]
    return [trained.player(trained.run.points.index(point)) for point in alike]


def load_members(path: str | Path, trust: bool = False) -> list[Player]:
    """Loads every agent of a run folder that did not diverge, in the order of `Run.points`; `trust` is that of `load`."""
    trained = _Trained(path, trust=trust)
    points = [p for p in trained.run.points if trained.diverged(p) is None]
    return [trained.player(trained.run.points.index(point)) for point in points]


class _Trained:
    """All agents of a run folder, and their final returns."""

    def __init__(self, path: str | Path, env: Any = None, method: Any = None, trust: bool = False):
        self.folder = find_run(path)
        self.record = record = self.folder.record()
        self.run = recreate(record.arguments, record.plan, self.folder.path, env, method, trust)

    @ft.cached_property
    def _checkpoint(self) -> Checkpoint:
        example = compile_grid(self.run.config, self.run.points).example
        restored = restore_checkpoint(self.folder, example)
        failed = self.record.failed
        if restored is None and failed:
            raise RunError(f"{self.folder.path} has no checkpoint, so no agent to load: {failed}")
        if restored is None:
            raise RunError(
                f"{self.folder.path} has no checkpoint, so there is no agent to load (published results have "
                f"none); train it with: {self.run.command()}"
            )
        return restored

    def diverged(self, point: Point) -> int | None:
        """Returns the update at which a member diverged; None if it was healthy at the last checkpoint."""
        update = self.record.stopped.get(self.run.member(point))
        return None if update is None or update > self._checkpoint.update else update

    def player(self, index: int) -> Player:
        """Returns a member; raises a RunError if it diverged, because its parameters are no numbers."""
        point = self.run.points[index]
        if (update := self.diverged(point)) is not None:
            raise RunError(
                f"{self.folder.path}: the agent with rate {point.rate:g} and seed {point.seed} diverged at update "
                f"{update}; choose another rate or seed"
            )
        state = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), self._checkpoint.state)
        about = {"run": self.run, "path": self.folder.path}
        return Player(state.agent, state.normalizers, self.run.row.meta, point, **about)

    def best(self, wanted: dict[str, Number | None]) -> int:
        """Returns the index of the member with the highest final return among those that match `wanted`."""
        points = self.run.points
        chosen = [points.index(point) for point in matching(points, wanted, self.folder.path)]
        curves: Any = self.folder.curves()
        finals: dict[Point, float] = {}
        if curves is not None:
            # Members that stopped have no row at the last update.
            last = curves[curves["update"] == curves["update"].max()]
            keys = last[list(Point._fields)].itertuples(index=False, name=None)
            finals = {Point(*key): value for key, value in zip(keys, last["return"], strict=True)}
        return max(chosen, key=lambda i: finals.get(points[i], -np.inf))
