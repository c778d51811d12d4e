"""`inspect`: writes the page of one agent, or of two agents on the same task."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from splagger.agents.player import Player, as_player
from splagger.errors import SettingError
from splagger.files.storage import write_output, writing
from splagger.inspection.counterfactuals import counterfactuals
from splagger.inspection.page import agent_data, page
from splagger.inspection.pictures import NO_PICTURES, pack
from splagger.inspection.trace import Trace, trace
from splagger.plots.styles import style_of
from splagger.spaces import Discrete, MultiDiscrete


def inspect(
    players: Player | Sequence[Player],
    path: str | Path,
    task_seed: int = 0,
    cut: int | None = None,
    worth: bool = True,
    draw: bool = True,
) -> list[Trace]:
    """Writes a self-contained HTML page of one meta-episode; returns the traces that it shows.

    - `players`: one agent, or two that were trained on the same environment, which play the same task.
    - `path`: the file to write.
    - `task_seed`: the seed of the task; `splagger watch` plays the same tasks.
    - `cut`: the step before which interventions empty or replace the memory; see `counterfactuals`.
    - `worth`: also play the interventions.
    - `draw`: show a picture of every state, for which the environment needs `render`.
    """
    alone = isinstance(players, Player | str | Path)
    players = [as_player(player) for player in ([players] if alone else players)]
    check_players(players)
    traces = [trace(player, task_seed, draw) for player in players]
    pictures = pack([frame for found in traces for frame in found.frames]) if draw else NO_PICTURES
    first = np.cumsum([0, *(len(found.frames) for found in traces)])
    agents = []
    for player, found, start in zip(players, traces, first, strict=False):
        outcomes = counterfactuals(player, found, task_seed, cut) if worth else []
        tiles = pictures.frames[start : start + len(found.frames)]
        look, sizes = _look(player), getattr(player.env.space, "sizes", ())
        agents.append(agent_data(*look, found, _action_names(player), tiles, outcomes, sizes))
    with writing(path):
        text = page(_title(players), _about(players, traces, task_seed), agents, pictures)
        write_output(path, text)
    return traces


def check_players(players: list[Player]) -> None:
    """Raises a SettingError unless these are one agent, or two of the same environment."""
    if not 1 <= len(players) <= 2:
        raise SettingError(f"a page shows one agent or two, got {len(players)}")
    envs = [player.environment("inspecting") for player in players]
    if envs[0] != envs[-1]:
        names = " and ".join(_env_name(player) for player in players)
        raise SettingError(
            f"two agents must have the same environment to play the same task, got {names}"
        )


def _look(player: Player) -> tuple[str, str]:
    """Returns the label and the color of an agent."""
    if player.run is None:
        return "agent", style_of("splagger").color
    style = style_of(player.run.method.name)
    color = "#888888" if style.color == "#000000" else style.color  # visible in dark mode, too
    age = "" if player.at is None else f", {player.at:,} frames"
    return f"{style.label} (rate {player.point.rate:g}, seed {player.point.seed}{age})", color


def _action_names(player: Player) -> list[str]:
    spec = getattr(player.environment("inspecting").env, "spec", None)
    names = getattr(spec, "action_names", ())
    match player.env.space:
        case Discrete(size):
            kind = "action"
        case MultiDiscrete(sizes):
            kind, size = "number", len(sizes)
        case continuous:
            kind, size, names = "dimension", continuous.size, ()
    return list(names) if len(names) == size else [f"{kind} {index}" for index in range(size)]


def _env_name(player: Player) -> str:
    return player.row.name if player.row else player.environment("inspecting").env.spec.name


def _title(players: list[Player]) -> str:
    methods = [style_of(p.run.method.name).label if p.run else "agent" for p in players]
    return f"{' and '.join(methods)} on {_env_name(players[0])}"


def _about(players: list[Player], traces: list[Trace], task_seed: int) -> str:
    runs = sorted({player.run.digest for player in players if player.run})
    signals = "Triangles mark signals, ticks" if traces[0].signal.any() else "Ticks mark"
    parts = (
        f"One task (seed {task_seed}), played with the most likely actions.",
        "Each step shows the moment of an action: what the memory holds before it, and the reward after it.",
        f"{signals} the ends of episodes.",
        f"Runs: {', '.join(runs)}." if runs else "",
    )
    return " ".join(filter(None, parts))
