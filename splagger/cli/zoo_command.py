"""`splagger zoo`: lists the trained agents inside the package, shows their cards, and makes them again."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from splagger.cli.formatting import show
from splagger.cli.options import OutputFolder
from splagger.errors import SettingError
from splagger.tables import Table, lookup
from splagger.zoo import Card, cards

Names = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="NAME")]


@dataclass(frozen=True)
class Zoo:
    """List the trained agents inside the package. `watch`, `inspect`, `evaluate` and splagger.load take their names."""

    names: Names = ()
    """Agents whose cards are shown in full; by default a table of all."""
    make: bool = False
    """Make these agents again: train them, and write their files and cards to --out."""
    out: OutputFolder = Path("runs/zoo")
    """Folder for agents that are made again."""

    def __call__(self) -> None:
        if self.make and not self.names:
            raise SettingError("--make needs the name of an agent, such as t-ls/splagger")
        if not self.names:
            show(zoo_table(list(cards().values())))
        for name in self.names:
            show(
                card_table(
                    self._made(name) if self.make else lookup(cards(), name, "agent in the zoo")
                )
            )

    def _made(self, name: str) -> Card:
        from splagger.agents.making import make

        return make(name, self.out)


def zoo_table(found: list[Card]) -> Table:
    """Returns one row per agent: what it earns, its size, and its training."""
    rows = [
        (
            card.name,
            f"{card.mean:.2f} ± {card.margin:.2f}",
            f"{card.bytes / 1000:,.0f} kB",
            f"{card.frames / 1e6:.1f} M",
            f"{card.seconds:,.0f} s",
            card.device.removeprefix("1 × "),
        )
        for card in found
    ]
    head = ("name", f"return on {found[0].tasks:,} tasks", "size", "frames", "training", "device")
    return Table("Agents", head, rows)


def card_table(card: Card) -> Table:
    """Returns all facts about one agent."""
    return Table(card.name, ("", ""), [(k, f"{v}") for k, v in asdict(card).items() if k != "name"])
