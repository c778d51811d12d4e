"""Loads trained agents from run folders, or from files with one agent each."""

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
from splagger.agents.player import Player
from splagger.errors import RunError, SettingError, UserError
from splagger.ppo.train import TrainState
from splagger.runs.axes import AXES
from splagger.runs.checkpoints import restore_checkpoint
from splagger.runs.folder import RunFolder
from splagger.runs.named_arrays import from_named_leaves, named_leaves
from splagger.runs.provenance import provenance
from splagger.runs.run import Number, Point, Run
from splagger.runs.storage import writing
from splagger.tables import lookup
from splagger.training.program import compile_grid

DESCRIPTION = "description"  # the entry of an agent file that is not an array of the agent


def load(
    path: str | Path,
    rate: float | None = None,
    seed: int | None = None,
    env: Any = None,
    method: Any = None,
    **settings: Number,
) -> Player:
    """Loads a trained agent from a run folder, or from a file that `save_agent` wrote.

    - `rate`, `seed`: select a member; by default the one with the highest final return.
    - `env`, `method`: what the agent was trained with; needed only if it has no name or import path.
    - `settings`: select by other axes: entropy_weight, kl_weight, temperature.
    """
    wanted: dict[str, Number | None] = {"rate": rate, "seed": seed} | settings
    if Path(path).is_file():
        return _from_file(Path(path), wanted, env, method)
    trained = _Trained(path, env, method)
    return trained.player(trained.best(wanted))


def load_seeds(path: str | Path) -> list[Player]:
    """Loads the best agent and all agents that differ from it only in their seed."""
    if Path(path).is_file():
        return [load(path)]
    trained = _Trained(path)
    best = trained.run.points[trained.best({})]
    alike = [best._replace(seed=seed) for seed in trained.run.seeds]
    return [trained.player(trained.run.points.index(point)) for point in alike]


class _Trained:
    """All agents of a run folder, and their final returns."""

    def __init__(self, path: str | Path, env: Any = None, method: Any = None):
        self.folder = RunFolder(path)
        record = self.folder.record()
        self.run = recreate(record.arguments, record.plan, self.folder.path, env, method)

    @ft.cached_property
    def _states(self) -> TrainState:
        example = compile_grid(self.run.config, self.run.points).example
        restored = restore_checkpoint(self.folder, example)
        if restored is None:
            raise RunError(
                f"{self.folder.path} has no checkpoint, so there is no agent to load (published results have "
                f"none); train it with: {self.run.command()}"
            )
        return restored.state

    def player(self, index: int) -> Player:
        state = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), self._states)
        point = self.run.points[index]
        about = {"run": self.run, "path": self.folder.path}
        return Player(state.agent, state.normalizers, self.run.row.meta, point, **about)

    def best(self, wanted: dict[str, Number | None]) -> int:
        """Returns the index of the member with the highest final return among those that match `wanted`."""
        points = self.run.points
        matching = [points.index(point) for point in _matching(points, wanted, self.folder.path)]
        curves: Any = self.folder.curves()
        finals: dict[Point, float] = {}
        if curves is not None:
            # Members that stopped have no row at the last update.
            last = curves[curves["update"] == curves["update"].max()]
            keys = last[list(Point._fields)].itertuples(index=False, name=None)
            finals = {Point(*key): value for key, value in zip(keys, last["return"], strict=True)}
        return max(matching, key=lambda i: finals.get(points[i], -np.inf))


def _matching(points: list[Point], wanted: dict[str, Number | None], path: Path) -> list[Point]:
    """Those of `points` that have every value in `wanted`."""
    wanted = {name: value for name, value in wanted.items() if value is not None}
    for name in wanted:
        lookup(dict.fromkeys(Point._fields), name, "setting of an agent")
    matching = [p for p in points if all(getattr(p, k) == v for k, v in wanted.items())]
    if not matching:
        given = ", ".join(f"{name} {value}" for name, value in wanted.items())
        values = {name: sorted({getattr(point, name) for point in points}) for name in wanted}
        there = "; ".join(f"{name}: {found}" for name, found in values.items())
        raise RunError(f"{path} has no agent with {given}; it has {there}")
    return matching


def save_agent(player: Player, path: str | Path) -> None:
    """Writes one agent to a .npz file of arrays and a description, without code. `load` reads it."""
    path = Path(path)
    if path.suffix != ".npz":
        raise SettingError(f"the name of an agent file must end with .npz, got {path}")
    if player.run is None:
        raise SettingError("a player without a run cannot be saved; use one from `splagger.load`")
    description = {
        "arguments": player.run.arguments(),
        "run": player.run.describe(),
        "point": player.point._asdict(),
        "provenance": provenance(player.run.command()),
    }
    leaves = named_leaves((player.agent, player.normalizers))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with writing(path), open(temporary, "wb") as handle:
            text = np.asarray(json.dumps(description))
            np.savez_compressed(handle, **{DESCRIPTION: text}, **leaves)
        with writing(path):
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _from_file(path: Path, wanted: dict[str, Number | None], env: Any, method: Any) -> Player:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
        about = json.loads(str(arrays.pop(DESCRIPTION)))
        arguments, plan, given = about["arguments"], about["run"], dict(about["point"])
        older = {axis.name: axis.default(plan)[0] for axis in AXES if axis.newer}
        point = Point(**(older | given))
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise RunError(
            f"{path} is not an agent that splagger wrote, or is damaged ({error})"
        ) from None
    run = recreate(arguments, plan, path, env, method)
    _matching([point], wanted, path)
    config = run.config

    def example():
        agent = build(jr.key(0), config.method, config.interface, config.network)
        return agent, agent.normalizers()

    try:
        agent, normalizers = from_named_leaves(jax.eval_shape(example), arrays)
    except ValueError as error:
        raise RunError(f"{path} is damaged ({error})") from None
    agent, normalizers = jax.tree.map(jnp.asarray, (agent, normalizers))
    return Player(agent, normalizers, run.row.meta, point, run=run, path=path)


def recreate(
    arguments: dict[str, Any], plan: dict[str, Any], path: Path, env: Any = None, method: Any = None
) -> Run:
    """Makes a recorded run again; `env` and `method` replace those in `arguments`."""
    given = {k: v for k, v in {"env": env, "method": method}.items() if v is not None}
    try:
        run = Run.create(**(arguments | given))
    except (UserError, TypeError) as error:
        raise RunError(
            f"{path} describes a run that cannot be made here: {error}; pass a custom environment or method "
            "to splagger.load(…, env=…, method=…)"
        ) from None
    if run.describe() != plan:
        raise RunError(
            f"{path} was made with other definitions of {run.row.name!r} or {run.method.name!r} than the installed "
            "ones; use the version that it names"
        )
    return run
