"""The zoo as tables, for the terminal and the docs."""

from splagger.paper_numbers import PROTOCOLS
from splagger.tables import Table, count
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
    recipe = RECIPES.get(card.name)
    rows = [
        ("return", f"{card.mean:.2f} ± {card.margin:.2f} on {card.tasks:,} new tasks"),
        ("in float32", f"{card.unrounded:.2f}, before its parameters were rounded to float16"),
        ("chosen from", count(card.chosen_from, "trained agent")),
        ("training", f"{card.frames:,} frames in {card.seconds:,.0f} s on {card.device}"),
        ("command", card.command),
        ("size", f"{card.parameters:,} parameters, {card.bytes:,} bytes"),
        ("sha256", card.sha256),
    ]
    if recipe and recipe.full_size:
        full = "{:.2f} [{:.2f}, {:.2f}]".format(*recipe.full_size)
        rows.append(("full size", f"{full}, the return of the paper's network"))
    return Table(card.name, ("", ""), rows)
