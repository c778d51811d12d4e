"""The tables of the README and the docs, made from the code and the recorded results: `make tables`.

A page holds each table between `<!-- table: NAME -->` and `<!-- end -->`. `python -m docs.tables` writes the present
content there, and a test fails while any page is out of date. A table is a function in one of the `*_tables.py` files
beside this one; its name in the pages is that of the function, with hyphens.
"""

import functools as ft
import re
import sys
from collections.abc import Callable

from docs.agents_tables import (
    agreement_agents,
    agreement_difference,
    agreement_falls,
    agreement_gradients,
    planning_agents,
)
from docs.beyond_tables import (
    beyond_arms,
    beyond_compilation,
    beyond_encoders,
    beyond_endless,
    beyond_episodes,
    beyond_gradients,
    beyond_laps,
    beyond_parts,
    beyond_scores,
    beyond_small,
    beyond_speed,
    beyond_standings,
    minigrid_memory,
)
from docs.catalog_tables import (
    classic_environments,
    environments,
    methods,
    rooms,
    zoo,
    zoo_rounding,
)
from docs.cluster_tables import cluster_cost, cluster_overhead, cluster_storm
from docs.fidelity_tables import (
    mc_ls_falls,
    mc_ls_sampling,
    pearl_noise,
    planning_by_rate,
    planning_bypass,
    planning_details,
)
from docs.paper_tables import (
    claim_counts,
    claims_decided,
    claims_in_one_sentence,
    claims_that_fail,
    claims_undecided,
    figures,
    returns,
    returns_in_short,
)
from docs.reliability_tables import saving, storm
from docs.speed_tables import (
    growth_envs,
    growth_length,
    growth_runs,
    parts,
    speed,
    speed_by_task,
    together,
)
from docs.table_parts import ROOT
from splagger.tables import lookup

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(r"<!-- table: ([\w-]+) -->\n(?:.*?\n)??<!-- end -->", re.DOTALL)

TABLES: dict[str, Callable[[], str]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        rooms,
        environments,
        classic_environments,
        methods,
        zoo,
        zoo_rounding,
        figures,
        returns,
        returns_in_short,
        claim_counts,
        claims_in_one_sentence,
        claims_that_fail,
        claims_decided,
        claims_undecided,
        pearl_noise,
        mc_ls_falls,
        mc_ls_sampling,
        planning_by_rate,
        planning_details,
        planning_agents,
        agreement_agents,
        agreement_falls,
        agreement_gradients,
        agreement_difference,
        planning_bypass,
        speed,
        speed_by_task,
        parts,
        growth_runs,
        growth_envs,
        growth_length,
        together,
        storm,
        saving,
        cluster_storm,
        cluster_overhead,
        cluster_cost,
        beyond_encoders,
        beyond_gradients,
        beyond_laps,
        beyond_parts,
        beyond_endless,
        beyond_standings,
        beyond_scores,
        beyond_episodes,
        beyond_small,
        beyond_speed,
        beyond_compilation,
        beyond_arms,
        minigrid_memory,
    )
}


@ft.cache
def _table(name: str) -> str:
    return lookup(TABLES, name, "table")()


def refreshed(text: str) -> str:
    """Returns a page with the present content of its tables."""
    block = lambda found: f"<!-- table: {found[1]} -->\n\n{_table(found[1])}\n\n<!-- end -->"  # noqa: E731
    return BLOCK.sub(block, text)


def main() -> int:
    """Writes every page that is out of date; prints their names."""
    for page in PAGES:
        text = page.read_text()
        if (new := refreshed(text)) != text:
            page.write_text(new)
            print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
