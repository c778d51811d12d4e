"""Dark Key-to-Door: find an invisible key, then an invisible door (Laskin et al., 2022)."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.envs.classic.goal_grid import NAMES, moved
from splagger.envs.protocol import EnvSpec, Step
from splagger.ranges import Side, Steps, check_fields
from splagger.spaces import Discrete


class KeyTask(NamedTuple):
    """The cells of key and door, (x, y) each."""

    key: Int[Array, "2"]
    door: Int[Array, "2"]


class KeyState(NamedTuple):
    """The agent's cell, whether it holds the key, and the time."""

    cell: Int[Array, "2"]
    has_key: Bool[Array, ""]
    time: Int[Array, ""]


class KeyToDoor(eqx.Module):
    """A dark room. The first step that ends on the key yields 1; a later one that ends on the door yields 1 more.

    The door ends the episode, which otherwise lasts `steps` steps. Key and door are two different cells, the same
    in all episodes of a task. The agent starts in the middle and observes only its coordinates, from 0 to 1: neither
    key nor door, and not whether it holds the key.

    >>> KeyToDoor(size=5).start
    (2, 2)
    """

    size: Side = eqx.field(static=True, default=9)
    steps: Steps = eqx.field(static=True, default=50)

    def __check_init__(self):
        check_fields(self, "KeyToDoor: ")

    @property
    def start(self) -> tuple[int, int]:
        """The cell in which every episode starts."""
        return self.size // 2, self.size // 2

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("Key to Door", 2, Discrete(5), self.steps, 0.0, 1.0, NAMES)

    def sample_task(self, key: Key[Array, ""]) -> KeyTask:
        first, second = jr.split(key)
        cells = self.size**2
        place = jr.randint(first, (), 0, cells)
        drawn = jr.randint(second, (), 0, cells - 1)
        door = drawn + (drawn >= place)  # one of the other cells, uniformly
        return KeyTask(
            *(jnp.stack(jnp.divmod(i, self.size)).astype(jnp.int32) for i in (place, door))
        )

    def reset(self, key: Key[Array, ""], task: KeyTask):
        state = KeyState(jnp.array(self.start, jnp.int32), jnp.zeros((), bool), jnp.int32(0))
        return state, self.observe(state)

    def step(self, key: Key[Array, ""], task: KeyTask, state: KeyState, action: Int[Array, ""]):
        cell, time = moved(state.cell, action, self.size), state.time + 1
        found = ~state.has_key & (cell == task.key).all()
        opened = state.has_key & (cell == task.door).all()
        state = KeyState(cell, state.has_key | found, time)
        reward = (found | opened).astype(jnp.float32)
        return state, Step(self.observe(state), reward, opened, time == self.steps)

    def observe(self, state: KeyState) -> Float[Array, "2"]:
        return state.cell / jnp.float32(self.size - 1)

    def render(self, task: KeyTask, state: KeyState, episode: int = 0, episodes: int = 1):
        from splagger.envs.classic import pictures

        marks = {tuple(task.key.tolist()): "key", tuple(task.door.tolist()): "door"}
        place, title = tuple(state.cell.tolist()), "Key to Door"
        status = "holds the key" if state.has_key else "no key"
        return pictures.grid(
            title, self.size, place, marks, episode + 1, episodes, int(state.time), status
        )
