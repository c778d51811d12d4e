"""The command `evaluate`: the returns of one agent, of all its seeds, or of its snapshots."""

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from splagger.cli.agent_commands import Chosen, Elsewhere, Member, OtherEnv, RunPath, age, which
from splagger.cli.formatting import show
from splagger.errors import RunError, SettingError
from splagger.ranges import Several
from splagger.tables import Table

if TYPE_CHECKING:
    from splagger.agents import Player, Score
    from splagger.stats.estimates import Estimate


class Result(NamedTuple):
    """An agent that was evaluated, with the returns of its episodes and of whole meta-episodes."""

    player: "Player"
    episodes: list["Score"]
    total: "Score"


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a trained agent on new tasks: return per episode with its 95% interval.

    Example: splagger evaluate runs/t-ls-demo/splagger --set env.length=40 --every-seed
    """

    run: RunPath
    """A run folder, a file written by `splagger export`, or the name of an agent in the zoo."""
    tasks: Several = 1000
    """Number of tasks, one meta-episode each."""
    member: Chosen = field(default_factory=Member)
    every_seed: bool = False
    """Evaluate all seeds of the best agent's rate; also print their mean with its interval over seeds."""
    every_snapshot: bool = False
    """Evaluate the agent at each of its snapshots (see `train --snapshot-every`): how it learned."""
    explore: bool = False
    """Sample actions, as in training, instead of taking the most likely ones."""
    json: bool = False
    """Print JSON."""
    elsewhere: Elsewhere = field(default_factory=OtherEnv)

    def __call__(self) -> None:
        if self.every_snapshot:
            self._every_snapshot()
        elif self.every_seed:
            self._every_seed()
        else:
            self._one()

    def _one(self) -> None:
        result = self._evaluate(self.member.load(self.run))
        if self.json:
            self._print_json([result])
            return
        rows = [(f"episode {k}", str(score)) for k, score in enumerate(result.episodes, 1)]
        rows.append(("meta-episode", str(result.total)))
        title = f"{self.tasks} tasks, {which(result.player)}"
        show(Table(title, ("", "return, 95% interval"), rows))

    def _every_snapshot(self) -> None:
        from splagger.agents import load, snapshots

        if self.every_seed or self.member.at is not None:
            other = "--every-seed" if self.every_seed else "--at"
            raise SettingError(
                f"--every-snapshot evaluates all snapshots of one agent; it takes no {other}"
            )
        chosen: dict[str, Any] = {"rate": self.member.rate, "seed": self.member.seed}
        results: dict[int, Result] = {}
        failed: dict[int, RunError] = {}
        for at in snapshots(self.run) or [0]:  # without snapshots, `load` says how to make them
            try:
                player = load(self.run, trust=self.member.trust, at=at, **chosen)
            except RunError as error:  # damaged, or diverged by then
                failed[at] = error
                continue
            chosen = player.point._asdict()  # the same agent in all rows, also while it trains
            if player.at == at:  # otherwise, a race had stopped it
                results[at] = self._evaluate(player)
        if not results:
            raise next(iter(failed.values()))
        if self.json:
            errors = [{"frames": at, "error": str(error)} for at, error in failed.items()]
            self._print_json(list(results.values()), not_evaluated=errors)
            return
        episodes = len(next(iter(results.values())).episodes)
        rows = {at: (*map(str, r.episodes), str(r.total)) for at, r in results.items()}
        rows |= {at: (*[""] * episodes, f"not evaluated: {failed[at]}") for at in failed}
        names = [f"episode {k}" for k in range(1, episodes + 1)]
        title = f"{self.tasks} tasks, rate {chosen['rate']:g}, seed {chosen['seed']}: return, 95% interval"
        cells = [(f"{at:,}", *rows[at]) for at in sorted(rows)]
        show(Table(title, ("frames", *names, "meta-episode"), cells))

    def _every_seed(self) -> None:
        import numpy as np

        from splagger.agents import load_seeds
        from splagger.stats.estimates import estimate, interval

        if self.member.rate is not None or self.member.seed is not None:
            raise SettingError("--every-seed evaluates the best rate; it takes no --rate or --seed")
        results = list(map(self._evaluate, load_seeds(self.run, self.member.trust, self.member.at)))
        first, left = results[0].player, []
        if first.run is not None and first.path is not None and first.path.is_dir():
            left = sorted(set(first.run.seeds) - {r.player.point.seed for r in results})
        mean = estimate(lambda x: x.mean(axis=-1), np.array([r.total.mean for r in results]))
        if self.json:
            errors = [{"seed": seed, "error": "diverged"} for seed in left]
            self._print_json(results, mean, not_evaluated=errors)
            return
        rows = [(f"seed {result.player.point.seed}", str(result.total)) for result in results]
        rows += [(f"seed {seed}", "diverged, not evaluated") for seed in left]
        rows.append(("mean of seeds", interval(mean, ".3f")))
        seeds = f"rate {first.point.rate:g}, {len(results)} seeds{age(first)}"
        title = f"{self.tasks} tasks, {seeds}"
        show(Table(title, ("", "return per meta-episode, 95% interval"), rows))

    def _evaluate(self, player: "Player") -> Result:
        from splagger.agents import evaluate

        player = self.elsewhere.of(player)
        return Result(player, *evaluate(player, self.tasks, explore=self.explore))

    def _print_json(
        self,
        results: list[Result],
        mean: "Estimate | None" = None,
        not_evaluated: list[dict[str, Any]] | None = None,
    ) -> None:
        """Prints returns with the ends of their 95% intervals; `mean` is that of all agents."""
        agents = [
            {
                **{
                    name: value
                    for name, value in r.player.point._asdict().items()
                    if value is not None
                },
                "frames": r.player.at,
                "episodes": list(map(_ends, r.episodes)),
                "return": _ends(r.total),
            }
            for r in results
        ]
        data: dict[str, Any] = {"run": str(self.run), "tasks": self.tasks, "explore": self.explore}
        data["agents"] = agents
        if mean is not None:
            data["mean_of_agents"] = {
                k: None if math.isnan(v) else v for k, v in mean._asdict().items()
            }
        data["not_evaluated"] = not_evaluated or []
        print(json.dumps(data, indent=2))


def _ends(score: "Score") -> dict[str, float]:
    return {
        "value": score.mean,
        "low": score.mean - score.margin,
        "high": score.mean + score.margin,
    }
