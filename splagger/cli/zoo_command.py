"""`splagger zoo`: lists the trained agents inside the package, shows their cards, and makes them again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from splagger.cli.formatting import show
from splagger.cli.options import OutputFolder
from splagger.errors import SettingError
from splagger.tables import lookup
from splagger.zoo import Card, cards
from splagger.zoo.listing import card_table, zoo_table

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
            show(zoo_table())
        for name in self.names:
            card = self._made(name) if self.make else lookup(cards(), name, "agent in the zoo")
            show(card_table(card))

    def _made(self, name: str) -> Card:
        from splagger.agents.making import make

        return make(name, self.out)
