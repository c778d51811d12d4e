"""Several processes, on one or many machines, that train one experiment together.

Every process runs the same command and trains its share of the members; only the first one reads and writes files.
Members do not depend on each other, so that processes exchange no more than metrics and states, see `gather`.
"""

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

from splagger.errors import Interrupted, RunError, SettingError, one_line

T = TypeVar("T")

ADDRESS, COUNT, INDEX = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"
SILENCE = 30  # seconds after which the other processes end if one has vanished
_CHUNKS = (1 << 12, 1 << 16, 1 << 20, 1 << 24)  # bytes per exchange: each size is compiled once


def join() -> None:
    """Connects this process to the others, if it was started as one of several; waits for all of them.

    That is so if JAX_COORDINATOR_ADDRESS (HOST:PORT of the first), JAX_NUM_PROCESSES and JAX_PROCESS_ID are set, or
    under `srun` and `mpirun` with several tasks. Must be called before JAX computes anything.
    """
    settings = settings_of(os.environ)
    if settings is None or jax.distributed.is_initialized():
        return
    jax.config.update("jax_enable_preemption_service", False)  # signals are ours
    try:
        jax.distributed.initialize(**settings, heartbeat_timeout_seconds=SILENCE)
    except (RuntimeError, ValueError) as error:
        raise RunError(
            f"cannot connect to the other processes of this experiment ({one_line(error)}); start the same command "
            f"in all of them, and check {ADDRESS}"
        ) from None


def settings_of(environment: Mapping[str, str]) -> dict[str, Any] | None:
    """Returns the arguments of `jax.distributed.initialize`; None for a process that trains alone."""
    if ADDRESS in environment:
        try:
            count, index = int(environment[COUNT]), int(environment[INDEX])
        except (KeyError, ValueError):
            raise SettingError(
                f"{ADDRESS} is set, so {COUNT} and {INDEX} must be numbers; set all three, or none of them"
            ) from None
        if not 0 <= index < count:
            raise SettingError(f"{INDEX} must be at least 0 and below {COUNT}, got {index}")
        return {
            "coordinator_address": environment[ADDRESS],
            "num_processes": count,
            "process_id": index,
            "cluster_detection_method": "deactivate",
        }
    if _number(environment, "SLURM_STEP_NUM_TASKS") > 1 and "SLURM_PROCID" in environment:
        # One task per machine gets all of its devices; of several tasks, each gets one.
        nodes, tasks = (_number(environment, f"SLURM_STEP_NUM_{n}") for n in ("NODES", "TASKS"))
        return {"local_device_ids": []} if tasks == nodes else {}
    return {} if _number(environment, "OMPI_COMM_WORLD_SIZE") > 1 else None


def count() -> int:
    """Returns the number of processes."""
    return jax.process_count()


def is_first() -> bool:
    """Whether this process reads and writes files."""
    return jax.process_index() == 0


def share(members: Sequence[T], index: int | None = None, processes: int | None = None) -> list[T]:
    """Returns the members that this process trains. All shares have the same size: the last member is repeated.

    >>> [share("abcde", index, 2) for index in range(2)]
    [['a', 'b', 'c'], ['d', 'e', 'e']]
    """
    index = jax.process_index() if index is None else index
    processes = jax.process_count() if processes is None else processes
    size = -(-len(members) // processes)
    last = len(members) - 1
    return [members[min(i, last)] for i in range(index * size, (index + 1) * size)]


def gather(value: Any) -> list[Any]:
    """Returns the values of all processes, in their order. Every process must call it at the same point.

    If another process has vanished, `Interrupted` is raised.
    """
    if jax.process_count() == 1:
        return [value]
    data = pickle.dumps(value)
    sizes = [int.from_bytes(row.tobytes(), "little") for row in _exchange(_size(data))]
    longest = max(sizes)
    chunk = next((size for size in _CHUNKS if size >= longest), _CHUNKS[-1])
    rounds = [_exchange(_padded(data, at, chunk)) for at in range(0, longest, chunk)]
    whole = np.concatenate(rounds, axis=1)
    return [pickle.loads(row[:size].tobytes()) for row, size in zip(whole, sizes, strict=True)]


def from_first(function: Callable[[], T]) -> T:
    """Calls a function in the first process only; returns its result, or raises its error, in all of them."""
    if jax.process_count() == 1:
        return function()
    result: Any = None
    error: Exception | None = None
    if is_first():
        try:
            result = function()
        except Exception as failure:
            error = failure
    result, error = gather((result, error))[0]
    if error is not None:
        raise error
    return result


def check_same(value: Any, command: str) -> None:
    """Raises a RunError in all processes unless `value`, what `command` trains, is equal in all of them."""
    values = gather((value, command))
    other = next((i for i, (found, _) in enumerate(values) if found != values[0][0]), None)
    if other is not None:
        raise RunError(
            f"the processes of this experiment train different ones: process 0 `{values[0][1]}`, process {other} "
            f"`{values[other][1]}`; start the same command in all of them"
        )


def anywhere(*flags: bool) -> list[bool]:
    """Returns for each flag whether it is set in any process."""
    return [any(values) for values in zip(*gather(flags), strict=True)]


def _exchange(data: np.ndarray) -> np.ndarray:
    """Returns the bytes [processes, n] of all processes."""
    from jax.experimental import multihost_utils

    try:
        return multihost_utils.process_allgather(data)
    except (RuntimeError, ValueError) as error:  # XLA's errors of a connection are of both kinds
        raise Interrupted(
            f"another process of this experiment has ended ({one_line(error)}); the same command continues from "
            "the last checkpoint",
            abandoned=True,
        ) from None


def _size(data: bytes) -> np.ndarray:
    return np.frombuffer(len(data).to_bytes(8, "little"), np.uint8)


def _padded(data: bytes, start: int, size: int) -> np.ndarray:
    part = np.frombuffer(data[start : start + size], np.uint8)
    return np.pad(part, (0, size - len(part)))


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    return int(text) if text.isdigit() else 1
