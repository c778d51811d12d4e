"""Makes an agent of the zoo: trains the grid of its recipe, chooses the best member, and writes its file and card."""

from pathlib import Path

import jax

from splagger.agents.evaluation import evaluate
from splagger.agents.exports import save_agent
from splagger.agents.loading import load, load_members
from splagger.agents.player import Player
from splagger.errors import SettingError
from splagger.files.agent_file import open_agent
from splagger.files.storage import sha256, writing
from splagger.runs.run import Run
from splagger.tables import lookup
from splagger.training.runner import execute
from splagger.zoo import RECIPES, Card, Recipe

TRIAL_TASKS, TRIAL_SEED = 256, 1  # on which members are compared; the card's tasks are others
CARD_TASKS, CARD_SEED = 1000, 0


def run_of(recipe: Recipe) -> Run:
    """Returns the run of a recipe."""
    return Run.create(
        recipe.env,
        recipe.method,
        recipe.frames,
        {**recipe.network, **recipe.settings},
        rates=recipe.rates,
        seeds=recipe.seeds,
    )


def make(name: str, out: str | Path = "runs/zoo", show: bool = True) -> Card:
    """Makes the agent `name` again; writes out/NAME.npz and out/NAME.json, and returns the card.

    A finished training run below `out` is not repeated. `name` is one of `splagger.zoo.RECIPES`.
    """
    recipe = lookup(RECIPES, name, "agent in the zoo")
    folder, _ = execute(run_of(recipe), Path(out) / "runs", show=show)
    return save_best(name, folder.path, Path(out))


def save_best(name: str, folder: Path, out: Path) -> Card:
    """Exports the best agent of a run folder as an agent of the zoo, with its card."""
    players = load_members(folder, trust=True)
    return publish(name, choose(players), len(players), out)


def publish(name: str, player: Player, chosen_from: int, out: Path) -> Card:
    """Writes the file of an agent, in half precision, and its card below `out`; `chosen_from` as in `Card`."""
    file = out / f"{name}.npz"
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    save_agent(player, file, half=True)
    card = card_of(name, file, player, chosen_from)
    card.write(out)
    return card


def choose(players: list[Player]) -> Player:
    """Returns the agent with the highest return on new tasks."""
    if len(players) == 1:
        return players[0]
    scores = [evaluate(player, TRIAL_TASKS, TRIAL_SEED)[1].mean for player in players]
    return max(zip(scores, players, strict=True), key=lambda pair: (pair[0] == pair[0], pair[0]))[1]


def card_of(name: str, file: Path, unrounded: Player, chosen_from: int) -> Card:
    """Measures the agent in `file`; `unrounded` is the same agent in float32."""
    with open_agent(file) as opened:
        training = opened.description.get("training")
    if training is None:
        raise SettingError(f"{file} does not say how it was trained: export it from a run folder")
    _, total = evaluate(load(file, trust=True), CARD_TASKS, CARD_SEED)
    _, before = evaluate(unrounded, CARD_TASKS, CARD_SEED)
    content = file.read_bytes()
    return Card(
        name=name,
        mean=round(total.mean, 4),
        margin=round(total.margin, 4),
        unrounded=round(before.mean, 4),
        tasks=CARD_TASKS,
        chosen_from=chosen_from,
        frames=training["frames"],
        seconds=round(training["seconds"], 1),
        device=training["provenance"]["device"],
        command=training["provenance"]["command"],
        parameters=sum(leaf.size for leaf in jax.tree.leaves(unrounded.agent)),
        bytes=len(content),
        sha256=sha256(content),
    )
