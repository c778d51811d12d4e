"""The zoo as tables, for the terminal and the docs."""

from dataclasses import asdict

from splagger.paper_numbers import PROTOCOLS
from splagger.tables import Table
from splagger.zoo.cards import Card, cards
from splagger.zoo.recipes import RECIPES


def zoo_table() -> Table:
    """Returns one row per agent: what it earns, beside what is possible and what full-size agents earn, and its cost."""
    head = ("name", "return", "best known", "full size", "file", "frames", "training")
    found = cards()
    tasks = {card.tasks for card in found.values()}
    title = f"Agents, with their return per meta-episode on {max(tasks, default=0):,} new tasks"
    return Table(title, head, [_row(found[name]) for name in RECIPES if name in found])


def _row(card: Card) -> tuple[str, ...]:
    recipe = RECIPES[card.name]
    full, best = recipe.full_size, PROTOCOLS.get(recipe.env)
    chosen = f", best of {card.chosen_from}" if card.chosen_from > 1 else ""
    return (
        card.name,
        f"{card.mean:.2f} ± {card.margin:.2f}",
        f"{best.best_return:g}" if best and best.best_return is not None else "",
        f"{full.value:.2f} [{full.low:.2f}, {full.high:.2f}]" if full else "",
        f"{card.bytes / 1000:.0f} kB",
        f"{card.frames / 1e6:.1f} M",
        f"{card.seconds:,.0f} s, {card.device.removeprefix('1 × ')}{chosen}",
    )


def card_table(card: Card) -> Table:
    """Returns all facts about one agent."""
    facts = asdict(card)
    recipe = RECIPES.get(card.name)
    if recipe and recipe.full_size:
        facts["full_size"] = "{:.2f} [{:.2f}, {:.2f}]".format(*recipe.full_size)
    return Table(card.name, ("", ""), [(k, f"{v}") for k, v in facts.items() if k != "name"])
