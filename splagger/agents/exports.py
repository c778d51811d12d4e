"""Agents in one file each: saved with all that they need to act, and loaded without running what a file names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr

from splagger.agent import Agent, Interface, Normalizers, build
from splagger.agents.interface import SavedInterface, interface_of
from splagger.agents.player import Player, as_player
from splagger.agents.rebuild import rebuild
from splagger.agents.recreate import matching, recreate
from splagger.agents.trust import named_code, untrusted
from splagger.errors import RunError, SettingError, one_line
from splagger.files.agent_file import AgentFile, in_half_precision, open_agent, write_agent
from splagger.identity import plain
from splagger.methods import METHODS, Method
from splagger.network import Network
from splagger.registry import ENVS
from splagger.runs.axes import AXES
from splagger.runs.folder import RunFolder
from splagger.runs.named_arrays import check_shapes, from_named_leaves, named_leaves, named_shapes
from splagger.runs.provenance import provenance
from splagger.runs.run import Number, Point


def save_agent(player: Player, path: str | Path, half: bool = False) -> None:
    """Writes one agent to a .npz file of arrays and a description, without code. `load` reads it.

    With `half`, the parameters are stored in half precision: the file has half the size, and the agent that `load`
    returns computes with the rounded numbers in float32. Moments of observations keep their precision.
    The environment in the file is that of training, also if `with_env` changed that of the player.
    """
    player = as_player(player)
    if player.run is None or isinstance(player.env, SavedInterface):
        raise SettingError(
            "a player without a run cannot be saved; use one that `splagger.load` returned with its environment"
        )
    description = {
        "arguments": player.run.arguments(),
        "run": player.run.describe(),
        "point": player.point._asdict(),
        "interface": interface_of(player.run.row.meta).to_json(),
        "provenance": provenance(player.run.command()),
        **_training(player),
    }
    arrays = named_leaves((player.agent, player.normalizers))
    if half:
        arrays |= in_half_precision({n: a for n, a in arrays.items() if n.startswith("0.")})
    write_agent(Path(path), description, arrays)


def _training(player: Player) -> dict[str, Any]:
    """Returns how an agent of a run folder was trained, or what its file says about it; else nothing."""
    path = player.path
    if path is not None and path.is_file():
        with open_agent(path) as file:
            return {k: v for k, v in file.description.items() if k == "training"}
    if path is None or not RunFolder(path).exists:
        return {}
    record = RunFolder(path).record()
    if player.at is not None:
        return {"training": {"frames": player.at, "provenance": record.provenance}}
    frames = record.frames
    if run := player.run:  # a race may have stopped this agent earlier
        frames = record.raced.get(run.member(player.point), record.update) * run.config.ppo.batch
    about = {"frames": frames, "seconds": record.seconds, "provenance": record.provenance}
    return {"training": about}


def load_file(
    path: Path, wanted: Mapping[str, Number | None], env: Any, method: Any, trust: bool
) -> Player:
    """Loads the agent of a file. Its environment is created only if it is ours, passed or trusted."""
    with open_agent(path) as file:
        saved = _Saved.read(path, file.description)
        matching([saved.point], wanted, path)
        method = method if method is not None or trust else _method_of(path, saved)
        missing = "" if trust else _missing_env(path, saved, env, method)
        if missing and saved.interface is not None:
            return _player_without_env(path, file, saved, method, missing)
        run = recreate(saved.arguments, saved.plan, path, env, method, trust)
        if saved.point not in run.points:
            raise RunError(f"{path} is damaged (its run has no member {tuple(saved.point)})")
        sizes = run.config.interface
        if saved.interface is not None and saved.interface.sizes() != sizes:
            raise RunError(
                f"{path}: {run.row.name} has other observations, actions or episodes than when the agent was saved"
            )
        parts = _read_agent(path, file, run.method, run.row.network, sizes)
    return Player(*parts, run.row.meta, saved.point, run=run, path=path)


class _Saved(NamedTuple):
    """The description in an agent file, as far as it can be checked without making its run."""

    arguments: dict[str, Any]
    plan: dict[str, Any]
    point: Point
    interface: SavedInterface | None  # files of format 1 have none

    @classmethod
    def read(cls, path: Path, description: dict[str, Any]) -> "_Saved":
        try:
            arguments, plan, point = (description[k] for k in ("arguments", "run", "point"))
            if not all(isinstance(part, dict) for part in (arguments, plan, point)):
                raise ValueError("its arguments, run or point are not JSON objects")
            if not all(isinstance(arguments[k], str) for k in ("env", "method")):
                raise ValueError("its environment or method is not a name")
            older = {axis.name: axis.default(plan)[0] for axis in AXES if axis.newer}
            is_old = description.get("format", 1) == 1
            interface = None if is_old else SavedInterface.from_json(description.get("interface"))
            return cls(arguments, plan, _point(older | point), interface)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            reason = ("it lacks " if isinstance(error, KeyError) else "") + one_line(error)
            raise RunError(
                f"{path} is not an agent that splagger wrote, or is damaged ({reason})"
            ) from None


def _point(values: dict[str, Any]) -> Point:
    point = Point(**values)
    for name, value in point._asdict().items():
        if type(value) not in ((int,) if name == "seed" else (int, float)):
            raise ValueError(f"its {name} is {value!r:.80}")
    return point


def _method_of(path: Path, saved: _Saved) -> Method | None:
    """Returns a method that is not in `METHODS` from its description, instead of importing it; else None."""
    name = saved.arguments["method"]
    if name in METHODS:
        return None
    try:
        return rebuild(saved.plan.get("method"), Method)
    except ValueError as error:
        code = named_code({"method": name})
        advice = f"the method {name!r:.80} is not in splagger.METHODS; pass method=…"
        raise RunError(
            untrusted(path, code) if code else f"{path}: {advice} ({one_line(error)})"
        ) from None


def _missing_env(path: Path, saved: _Saved, env: Any, method: Any) -> str:
    """Says why the environment cannot be created; empty if it can."""
    code = named_code(saved.arguments, env, method)
    name = saved.arguments["env"]
    if code:
        return untrusted(path, code)
    is_unknown = env is None and name not in ENVS
    return (
        f"{path} has the environment {name!r:.80}, which is not known here; pass env=…" * is_unknown
    )


def _player_without_env(
    path: Path, file: AgentFile, saved: _Saved, method: Method | None, missing: str
) -> Player:
    """Returns a player that acts by the interface in the file."""
    assert saved.interface is not None
    try:
        described = rebuild(saved.plan.get("method"), Method) if method is None else method
        network = rebuild(saved.plan.get("network"), Network)
    except ValueError as error:
        raise RunError(f"{path} is damaged ({one_line(error)})") from None
    if plain(described) != saved.plan.get("method"):
        raise RunError(f"{path} was made with another method than {described.name!r}")
    parts = _read_agent(path, file, described, network, saved.interface.sizes())
    interface = replace(saved.interface, missing=missing)
    return Player(*parts, interface, saved.point, path=path)


def _read_agent(
    path: Path, file: AgentFile, method: Method, network: Network, interface: Interface
) -> tuple[Agent, Normalizers]:
    """Reads the arrays, after all their shapes have been compared with those of such an agent."""

    def example():
        agent = build(jr.key(0), method, interface, network)
        return agent, agent.normalizers()

    try:
        shapes = jax.eval_shape(example)
        expected = named_shapes(shapes)
        check_shapes(expected, file.headers)
        extra = sorted(set(file.headers) - set(expected))
        if extra:
            raise ValueError(f"the agent has no array {extra[0]!r:.80}")
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise RunError(f"{path} is damaged ({one_line(error)})") from None
    return jax.tree.map(jnp.asarray, from_named_leaves(shapes, file.arrays()))
