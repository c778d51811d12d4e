"""How memories replace a signal by a newer one: `python -m benchmarks.endless RUN…`, with runs on `t-endless`.

Writes benchmarks/results/endless.json, one entry per agent:

  by_lap            how often the right door is opened in each of 32 laps, four times as many as in training
  as_trained        the same over the laps of training
  without_bypass    over these laps, if the policy sees zeros in place of the neurons that bypass the aggregator
  without_aggregate likewise for the aggregated neurons
  without_actions   if the memory sees the same action in every transition of the corridor; those at doors are unchanged

The runs are made by `splagger sweep --envs t-endless --methods splagger rnn splagger-nosplit splagger-nornn --small
--rates 3e-3 --seeds 5 --frames 1.2e6`.
"""

import functools as ft
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from splagger.agent import Agent
from splagger.agents.loading import load_seeds
from splagger.agents.player import Player
from splagger.memory import SequenceModel, Transition
from splagger.ppo.evaluation import play
from splagger.runs.provenance import provenance
from splagger.training.compiler import set_up_compiler

RESULT = Path(__file__).parent / "results" / "endless.json"
LAPS, TASKS, SEED = 32, 500, 0


def right_doors(player: Player, memory: SequenceModel | None = None) -> np.ndarray:
    """Returns how often the right door is opened in each lap; `memory` replaces the agent's."""
    agent = player.agent if memory is None else eqx.tree_at(_memory, player.agent, memory)
    return np.asarray(_right_doors(player.environment("playing"), agent, player.normalizers))


def _memory(agent: Agent) -> SequenceModel:
    return agent.memory


@ft.partial(jax.jit, static_argnums=0)
def _right_doors(env, agent, normalizers):
    reward = play(env, agent, normalizers, TASKS, jr.key(SEED)).transitions.reward
    by_lap = reward.reshape(env.env.laps, env.env.length, TASKS).sum(axis=1)
    return (by_lap > 0).mean(axis=1)


class WithoutActions(eqx.Module):
    """An embedding to which all actions in the corridor look the same; they have no effect there."""

    embedding: Callable

    def __call__(self, transition: Transition):
        at_door = transition.obs[2] > 0
        action = jnp.where(at_door, transition.action, 0)
        return self.embedding(transition._replace(action=action))


def changed_memories(memory: SequenceModel) -> Iterator[tuple[str, SequenceModel]]:
    """Yields memories that lack something; an empty maximum reads 0, as a zero weight does."""
    skip, width = memory.aggregation.skip, memory.aggregation.width
    weight = lambda model: model.projection.weight  # noqa: E731
    if 0 < skip < width:
        yield "without_bypass", eqx.tree_at(weight, memory, weight(memory).at[:, :skip].set(0))
        yield "without_aggregate", eqx.tree_at(weight, memory, weight(memory).at[:, skip:].set(0))
    hidden = WithoutActions(memory.embedding)
    yield "without_actions", eqx.tree_at(lambda model: model.embedding, memory, hidden)


def measure(player: Player) -> dict:
    """Returns the entry of one agent."""
    assert player.run is not None
    row = {"method": player.run.method.name, "run": player.run.digest, "seed": player.point.seed}
    row["by_lap"] = right_doors(player.with_env(laps=LAPS)).round(3).tolist()
    row["as_trained"] = float(right_doors(player).mean())
    for name, memory in changed_memories(player.agent.memory):
        row[name] = float(right_doors(player, memory).mean())
    print({name: value for name, value in row.items() if name != "by_lap"}, row["by_lap"][-1])
    return row


def main(paths: list[str]) -> None:
    set_up_compiler()
    rows = [measure(player) for path in paths for player in load_seeds(path)]
    command = "python -m benchmarks.endless " + " ".join(Path(path).name for path in paths)
    result = {"laps": LAPS, "tasks": TASKS, "rows": rows, "provenance": provenance(command)}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(RESULT)


if __name__ == "__main__":
    main(sys.argv[1:])
