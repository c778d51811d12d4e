"""The Planning Game: reach goals on a torus whose node labels are shuffled per task (Ritter et al., 2021)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

from splagger.envs.protocol import EnvSpec, Step
from splagger.ranges import Side, Steps, check_fields
from splagger.spaces import Discrete

MOVES = ((0, 1), (0, -1), (-1, 0), (1, 0), (0, 0))  # up, down, left, right, collect
COLLECT = 4


class PlanningState(NamedTuple):
    """The nodes of agent and goal (node = x · size + y), the time, and the number of collected goals."""

    node: Int[Array, ""]
    goal: Int[Array, ""]
    time: Int[Array, ""]
    collected: Int[Array, ""]


class Planning(eqx.Module):
    """A torus of size × size nodes. Collecting on the goal's node yields reward 1 and moves the goal elsewhere.

    The task is a permutation: the label of each node. An episode lasts `horizon` steps. Observation: the labels
    of the agent's and the goal's node, both one-hot; without `show_labels`, only whether the nodes are the same.

    >>> Planning(size=4).spec.obs_size
    32
    """

    size: Side = eqx.field(static=True, default=3)
    horizon: Steps = eqx.field(static=True, default=100)
    show_labels: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        check_fields(self, "Planning: ")

    @property
    def nodes(self) -> int:
        return self.size**2

    @property
    def spec(self) -> EnvSpec:
        obs_size = 2 * self.nodes if self.show_labels else 1
        names = ("up", "down", "left", "right", "collect")
        size, space = obs_size, Discrete(5)
        return EnvSpec(
            "Planning Game", size, space, self.horizon, 0.0, 1.0, names, fixed_length=True
        )

    def sample_task(self, key: Key[Array, ""]) -> Int[Array, " nodes"]:
        return jr.permutation(key, self.nodes)

    def reset(self, key: Key[Array, ""], task: Int[Array, " nodes"]):
        node_key, goal_key = jr.split(key)
        node = jr.randint(node_key, (), 0, self.nodes)
        zero = jnp.int32(0)
        state = PlanningState(node, self._other(goal_key, node), zero, zero)
        return state, self.observe(task, state)

    def step(self, key: Key[Array, ""], task, state: PlanningState, action: Int[Array, ""]):
        collected = (action == COLLECT) & (state.node == state.goal)
        x, y = jnp.divmod(state.node, self.size)
        dx, dy = jnp.array(MOVES)[action]
        node = (x + dx) % self.size * self.size + (y + dy) % self.size
        goal = jnp.where(collected, self._other(key, state.node), state.goal)
        state = PlanningState(node, goal, state.time + 1, state.collected + collected)
        step = Step(
            self.observe(task, state),
            collected.astype(jnp.float32),
            jnp.zeros((), bool),
            state.time == self.horizon,
        )
        return state, step

    def observe(self, task: Int[Array, " nodes"], state: PlanningState) -> Float[Array, " obs"]:
        if not self.show_labels:
            return (state.node == state.goal).astype(jnp.float32)[None]
        labels = task[jnp.stack([state.node, state.goal])]
        return jax.nn.one_hot(labels, self.nodes).ravel()

    def render(self, task, state: PlanningState, episode: int = 0, episodes: int = 1):
        from splagger.envs import pictures

        node, goal, time, collected = (int(x) for x in state)
        return pictures.planning(
            self.size, task.tolist(), node, goal, time, collected, self.show_labels
        )

    def _other(self, key, node):
        """Draws one of the other nodes, uniformly."""
        drawn = jr.randint(key, (), 0, self.nodes - 1)
        return drawn + (drawn >= node)
