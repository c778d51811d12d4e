"""A ring buffer of past meta-episodes, one row per task."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from splagger.memory import Transition


class Buffer(NamedTuple):
    """`rows` trajectories of up to L steps. Each of the N environments writes into an open row."""

    steps: Transition  # leaves [rows, L, …]
    length: Int[Array, " rows"]
    complete: Bool[Array, " rows"]
    open_row: Int[Array, " N"]
    position: Int[Array, " N"]
    next_row: Int[Array, ""]

    @classmethod
    def create(cls, rows: int, horizon: int, envs: int, example: Transition) -> "Buffer":
        """Returns an empty buffer; `example` is one transition, for shapes."""
        empty = lambda leaf: jnp.zeros((rows, horizon, *leaf.shape), leaf.dtype)  # noqa: E731
        return cls(
            jax.tree.map(empty, example),
            jnp.zeros(rows, jnp.int32),
            jnp.zeros(rows, bool),
            jnp.arange(envs, dtype=jnp.int32),
            jnp.zeros(envs, jnp.int32),
            jnp.int32(envs),
        )


def insert(buffer: Buffer, steps: Transition, task_done: Bool[Array, "T N"]) -> Buffer:
    """Writes a rollout into the buffer; the end of a task closes its row and opens another."""
    time = jnp.arange(task_done.shape[0], dtype=jnp.int32)[:, None]
    new_rows = buffer.next_row + jnp.cumsum(task_done.ravel()).reshape(task_done.shape) - 1
    new_rows = jnp.where(task_done, new_rows, -1).astype(jnp.int32)
    opened = jax.lax.cummax(_before(new_rows, -1))
    row = jnp.where(opened < 0, buffer.open_row[None], opened)
    last_end = jax.lax.cummax(_before(jnp.where(task_done, time, -1), -1))
    position = jnp.where(last_end < 0, buffer.position[None] + time, time - last_end - 1)

    capacity = buffer.length.shape[0]
    slot = row % capacity
    nowhere = capacity  # out of range: dropped
    fresh = jnp.where(task_done, new_rows % capacity, nowhere)
    closed = jnp.where(task_done, slot, nowhere)
    write = lambda old, new: old.at[slot, position].set(new, mode="drop")  # noqa: E731
    ended = task_done[-1]
    return Buffer(
        jax.tree.map(write, buffer.steps, steps),
        buffer.length.at[closed].set(position + 1, mode="drop"),
        buffer.complete.at[fresh].set(False, mode="drop").at[closed].set(True, mode="drop"),
        jnp.where(ended, new_rows[-1], row[-1]),
        jnp.where(ended, 0, position[-1] + 1),
        buffer.next_row + task_done.sum(dtype=jnp.int32),
    )


def sample(buffer: Buffer, count: int, key: Key[Array, ""]):
    """Returns (trajectories [count, L, …], lengths, weights) of complete rows, without replacement.

    If there are fewer than `count`, the rest have weight 0.
    """
    score = jnp.where(buffer.complete, jr.uniform(key, buffer.complete.shape), -1.0)
    best, rows = jax.lax.top_k(score, count)
    weights = (best >= 0).astype(jnp.float32)
    return jax.tree.map(lambda leaf: leaf[rows], buffer.steps), buffer.length[rows], weights


def _before(x: Int[Array, "T N"], first: int) -> Int[Array, "T N"] | Float[Array, "T N"]:
    """Shifts x by one step; `first` is the value of the first step."""
    return jnp.concatenate([jnp.full_like(x[:1], first), x[:-1]])
