"""From what a run left behind to its agents: the checkpoint of all of them, or a file of one."""

import functools as ft
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.agent import build
from splagger.experiments.grid import Number, Point, Run
from splagger.experiments.player import Player
from splagger.experiments.program import compile_grid
from splagger.experiments.provenance import provenance
from splagger.experiments.records import RunError, RunFolder, from_named_leaves, named_leaves
from splagger.ppo.train import TrainState
from splagger.tables import lookup

DESCRIPTION = "description"  # of an agent's file; no part of an agent is called so


def load(
    path: str | Path,
    rate: float | None = None,
    seed: int | None = None,
    env: Any = None,
    method: Any = None,
    **settings: Number,
) -> Player:
    """The trained agent of a run folder: of the given rate and seed, or the best at the end of training.

    Of a sweep of other numbers, `settings` may name them: entropy_weight, kl_weight, temperature. `env` and
    `method` are those it was trained with, where they are in no table and no module. `path` may also be a file
    that `save_agent` wrote.
    """
    wanted: dict[str, Number | None] = {"rate": rate, "seed": seed} | settings
    if Path(path).is_file():
        return _from_file(Path(path), wanted, env, method)
    trained = _Trained(path, env, method)
    return trained.player(trained.best(wanted))


def load_seeds(path: str | Path) -> list[Player]:
    """The best agent, and those that differ from it by their seed alone."""
    if Path(path).is_file():
        return [load(path)]
    trained = _Trained(path)
    best = trained.run.points[trained.best({})]
    alike = [best._replace(seed=seed) for seed in trained.run.seeds]
    return [trained.player(trained.run.points.index(point)) for point in alike]


class _Trained:
    """All agents of a run folder, and how they ended."""

    def __init__(self, path: str | Path, env: Any = None, method: Any = None):
        self.folder = RunFolder(path)
        self.run = run_of(self.folder.read(), self.folder.path, env, method)

    @ft.cached_property
    def _states(self) -> TrainState:
        restored = self.folder.restore(compile_grid(self.run.config, self.run.points).example)
        if restored is None:
            raise RunError(
                f"{self.folder.path} has no checkpoint, so there is no agent to load (published results come "
                f"without); train it by: {self.run.command()}"
            )
        return restored[1]

    def player(self, index: int) -> Player:
        state = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), self._states)
        point = self.run.points[index]
        about = {"run": self.run, "path": self.folder.path}
        return Player(state.agent, state.normalizers, self.run.row.meta, point, **about)

    def best(self, wanted: dict[str, Number | None]) -> int:
        """Which of those that have all that is `wanted` returns most at the end of training."""
        points = self.run.points
        fitting = [points.index(point) for point in _fitting(points, wanted, self.folder.path)]
        rows = self.folder.read_curves()
        end = max((row["update"] for row in rows), default=0)  # runs that stopped did not get there
        finals = {
            Point(*(row[f] for f in Point._fields)): row["return"]
            for row in rows
            if row["update"] == end
        }
        return max(fitting, key=lambda i: finals.get(points[i], -np.inf))


def _fitting(points: list[Point], wanted: dict[str, Number | None], place: Path) -> list[Point]:
    """Those of `points` that have all that is `wanted`."""
    wanted = {name: value for name, value in wanted.items() if value is not None}
    for name in wanted:
        lookup(dict.fromkeys(Point._fields), name, "setting of an agent")
    fitting = [p for p in points if all(getattr(p, k) == v for k, v in wanted.items())]
    if not fitting:
        given = ", ".join(f"{name} {value}" for name, value in wanted.items())
        there = {name: sorted({getattr(point, name) for point in points}) for name in wanted}
        told = "; ".join(f"{name}: {values}" for name, values in there.items())
        raise RunError(f"{place} has no agent with {given}; it has {told}")
    return fitting


def save_agent(player: Player, path: str | Path) -> None:
    """Writes one agent into one .npz file: numbers and a description, no code. `load` reads it anywhere."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"an agent is written as .npz, got {path}")
    if player.run is None:
        raise ValueError("this player does not know its run; use one that `splagger.load` gave")
    about = {
        "arguments": player.run.arguments(),
        "run": player.run.describe(),
        "point": player.point._asdict(),
        "provenance": provenance(player.run.command()),
    }
    leaves = named_leaves((player.agent, player.normalizers))
    temporary = path.with_name(
        f".{path.name}.{os.getpid()}.tmp"
    )  # what was there stays until all is written
    try:
        with open(temporary, "wb") as handle:
            np.savez_compressed(handle, **{DESCRIPTION: np.asarray(json.dumps(about))}, **leaves)
        os.replace(temporary, path)
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror}); choose another place") from None
    finally:
        temporary.unlink(missing_ok=True)


def _from_file(path: Path, wanted: dict[str, Number | None], env: Any, method: Any) -> Player:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
        about = json.loads(str(arrays.pop(DESCRIPTION)))
        point = Point(**about["point"])
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(f"{path} is no agent that splagger wrote, or is damaged ({error})") from None
    run = run_of(about, path, env, method)
    _fitting([point], wanted, path)
    config = run.config

    def example():
        agent = build(jr.key(0), config.method, config.interface, config.network)
        return agent, agent.normalizers()

    expected = jax.eval_shape(example)
    try:
        agent, normalizers = from_named_leaves(expected, arrays)
    except ValueError as error:
        raise RunError(f"{path} is damaged ({error})") from None
    agent, normalizers = jax.tree.map(jnp.asarray, (agent, normalizers))
    return Player(agent, normalizers, run.row.meta, point, run=run, path=path)


def run_of(record: dict[str, Any], place: Path, env: Any = None, method: Any = None) -> Run:
    """The run that a record describes, made again."""
    given = {k: v for k, v in {"env": env, "method": method}.items() if v is not None}
    try:
        run = Run.create(**(record["arguments"] | given))
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{place} describes a run that cannot be made here: {error}; an environment or method of "
            "your own can be given to splagger.load(…, env=…, method=…)"
        ) from None
    if run.describe() != record["run"]:
        raise RunError(
            f"{place} was made with other definitions of {run.row.name!r} or {run.method.name!r} "
            "than those installed; use the version that it names"
        )
    return run
