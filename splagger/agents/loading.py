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
from splagger.errors import RunError, SettingError
from splagger.ranges import FramesSoFar, check
from splagger.runs.checkpoints import Snapshot, restore_checkpoint, restore_snapshot
from splagger.runs.folder import find_run, paths_of
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
    at: Number | None = None,
    **settings: Number,
) -> Player:
    """Loads a trained agent from a run folder, from a file that `save_agent` wrote, or from the zoo.

    - `path`: a file, a run folder, a folder with only one run folder below it, or a name that `splagger zoo` lists,
      such as "t-ls/splagger". A file or folder of that name comes first.
    - `rate`, `seed`: select a member; by default the one with the highest final return.
    - `env`, `method`: what the agent was trained with, if that is not in `ENVS` and `METHODS`.
    - `trust`: import and call what the folder or file names: environments such as "gym:module:function", and methods
      such as "module:name". Without it, loading runs no code that is not part of this package.
    - `at`: load the snapshot nearest to this number of frames instead of the last agent, if the run has snapshots.
    - `settings`: select by other axes: entropy_weight, kl_weight, temperature.

    An agent from a file acts without its environment. Evaluating and watching it needs `env` or `trust`.
    """
    wanted: dict[str, Number | None] = {"rate": rate, "seed": seed} | settings
    path = _located(path, at)
    if path.is_file():
        return load_file(path, wanted, env, method, trust)
    trained = _Trained(path, env, method, trust, at)
    return trained.player(trained.best(wanted))


def load_seeds(path: str | Path, trust: bool = False, at: Number | None = None) -> list[Player]:
    """Loads the best agent and all agents that differ from it only in their seed, but none that diverged.

    `trust` and `at` are those of `load`.
    """
    path = _located(path, at)
    if path.is_file():
        return [load(path, trust=trust)]
    trained = _Trained(path, trust=trust, at=at)
    best = trained.run.points[trained.best({})]
    seeds = [best._replace(seed=seed) for seed in trained.run.seeds]
    alike = [p for p in seeds if p == best or trained.diverged(p) is None]
    return [trained.player(trained.run.points.index(point)) for point in alike]


def load_members(path: str | Path, trust: bool = False) -> list[Player]:
    """Loads every agent of a run folder that did not diverge, in the order of `Run.points`; `trust` is that of `load`."""
    trained = _Trained(path, trust=trust)
    points = [p for p in trained.run.points if trained.diverged(p) is None]
    return [trained.player(trained.run.points.index(point)) for point in points]


def snapshots(path: str | Path) -> list[int]:
    """Returns the frames after which a run kept its agents; `load(path, at=FRAMES)` loads one of them.

    Empty for runs that were trained without `snapshot_every`, and for agents in files and in the zoo.
    """
    path = locate(path)
    if path.is_file():
        return []
    folder = find_run(path)
    ppo = folder.record().plan.get("ppo", {})
    return [update * ppo["envs"] * ppo["steps"] for update in folder.snapshots() if ppo]


def _located(path: str | Path, at: Number | None) -> Path:
    """Returns the path of an agent; raises a SettingError if `at` cannot choose one there."""
    path = locate(*paths_of([path]))
    if at is not None:
        check("at", at, FramesSoFar)
        if path.is_file():
            raise SettingError(f"{path} is one agent; only run folders have snapshots")
    return path


class _Trained:
    """All agents of a run folder, at the end of training or at the snapshot nearest to `at` frames."""

    def __init__(
        self,
        path: str | Path,
        env: Any = None,
        method: Any = None,
        trust: bool = False,
        at: Number | None = None,
    ):
        self.folder = find_run(path)
        self.record = record = self.folder.record()
        self.run = recreate(record.arguments, record.plan, self.folder.path, env, method, trust)
        self.at = at

    @ft.cached_property
    def _agents(self) -> tuple[int, Snapshot]:
        """The update after which the agents were saved, and all of them."""
        example = compile_grid(self.run.config, self.run.points).example
        if self.at is not None:
            update = self._nearest(self.at)
            return update, restore_snapshot(self.folder, update, example)
        restored = restore_checkpoint(self.folder, example)
        failed = self.record.failed
        if restored is None and failed:
            raise RunError(f"{self.folder.path} has no checkpoint, so no agent to load: {failed}")
        if restored is None:
            raise RunError(
                f"{self.folder.path} has no checkpoint, so there is no agent to load (published results have "
                f"none); train it with: {self.run.command()}"
            )
        return restored.update, Snapshot(restored.state.agent, restored.state.normalizers)

    def _nearest(self, frames: Number) -> int:
        """Returns the update of the snapshot nearest to these frames."""
        found = self.folder.snapshots()
        if not found:
            raise RunError(
                f"{self.folder.path} has no snapshots; `splagger train … --snapshot-every FRAMES` keeps them"
            )
        return min(found, key=lambda update: abs(update * self.run.config.ppo.batch - frames))

    def diverged(self, point: Point) -> int | None:
        """Returns the update by which a member had diverged; None if it was healthy when the agents were saved.

        Snapshots may be newer than the record that names the diverged ones.
        """
        saved, agents = self._agents
        update = self.record.stopped.get(self.run.member(point))
        if update is not None and update <= saved:
            return update
        index = self.run.points.index(point)
        finite = all(np.isfinite(leaf[index]).all() for leaf in jax.tree.leaves(agents.agent))
        return None if finite else saved

    def player(self, index: int) -> Player:
        """Returns a member; raises a RunError if it diverged: its parameters are then infinite or NaN."""
        point = self.run.points[index]
        if (update := self.diverged(point)) is not None:
            raise RunError(
                f"{self.folder.path}: the agent with rate {point.rate:g} and seed {point.seed} had diverged by update "
                f"{update}; choose another rate or seed"
            )
        update, saved = self._agents
        update = min(update, self.record.raced.get(self.run.member(point), update))
        agent, normalizers = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), saved)
        at = None if self.at is None else update * self.run.config.ppo.batch
        about = {"run": self.run, "path": self.folder.path, "at": at}
        return Player(agent, normalizers, self.run.row.meta, point, **about)

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
        elif self.at is not None and len(chosen) > 1:
            raise RunError(
                f"{self.folder.path}: no evaluation is saved yet, so the best agent is unknown; choose a rate and a seed"
            )
        return max(chosen, key=lambda i: finals.get(points[i], -np.inf))
