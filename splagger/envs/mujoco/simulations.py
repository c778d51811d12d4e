"""Simulations on the host, in numpy and C: nothing here may call JAX, which waits for what is done here.

All cores share the work, or as many as SPLAGGER_THREADS says; the results are the same to the last bit. A
simulation that MuJoCo calls unstable does not stop the others: it keeps the state it had, has not moved, and
is reported as failed.
"""

import contextlib
import functools as ft
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from splagger.errors import SettingError

THREADS = "SPLAGGER_THREADS"


@dataclass(frozen=True)
class Robot:
    """A model of MuJoCo: its file beside this one, how many physics steps an action lasts, and which of the
    model's fields a task multiplies, number by number. All joints slide or turn on one axis."""

    file: str
    frame_skip: int
    total_mass: float | None = None  # as the file says, if None
    scaled: tuple[str, ...] = ()


class Simulations:
    """So many simulations of one robot, to be used by one thread at a time: `step` sees to that.

    Nothing is remembered from call to call but the models of the last tasks: a model's derived constants
    are computed again only where a task is another than before.
    """

    def __init__(self, robot: Robot, count: int, threads: int):
        mujoco = library()
        kinds = mujoco.mjtWarning
        unstable = kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC
        self.unstable = [kind.value for kind in unstable]
        self.error = mujoco.batch.SimulationError
        self.model, self.frame_skip = load(robot), robot.frame_skip
        self.batch = mujoco.batch.Batch(self.model, count, min(threads, count))
        self.control = self.batch.bind("ctrl")
        self.numbers = self.batch.state[:, : 1 + self.model.nq + 2 * self.model.nv]
        self.fields = [(name, getattr(self.model, name).copy()) for name in robot.scaled]
        self.factors = np.full((count, sum(field.size for _, field in self.fields)), np.nan)
        self.lock = threading.Lock()

    @staticmethod
    @ft.lru_cache(maxsize=16)
    def shared(robot: Robot, count: int, threads: int) -> "Simulations":
        """One for each size of batch."""
        return Simulations(robot, count, threads)

    def step(self, numbers: np.ndarray, action: np.ndarray, factors: np.ndarray):
        """(numbers, speed, failed) of all simulations after an action each; leading axis [count]."""
        with self.lock:
            self._set_tasks(factors)
            self.numbers[:] = numbers
            # An agent that has diverged moves nothing; its reward tells of it.
            self.control[:] = np.where(np.isfinite(action), action, 0.0)
            failed = self._run()
            after = np.where(failed[:, None], numbers, self.numbers)
        duration = self.frame_skip * self.model.opt.timestep
        return after, (after[:, 1] - numbers[:, 1]) / duration, failed

    def _run(self) -> np.ndarray:
        """Which simulations failed: those that are not finite, or that MuJoCo had to start over."""
        before = self._instabilities()
        with contextlib.suppress(self.error):  # of those in `status`; the others went on
            self.batch.step(nstep=self.frame_skip)
        finite = np.isfinite(self.numbers).all(axis=1)
        return (self.batch.status != 0) | (self._instabilities() != before) | ~finite

    def _instabilities(self) -> np.ndarray:
        """How often MuJoCo found positions, velocities or accelerations that are no numbers, or huge."""
        return self.batch.warning[:, self.unstable, 1].sum(axis=1)

    def _set_tasks(self, factors: np.ndarray) -> None:
        """Writes the models of those tasks that are new, and what MuJoCo derives from them."""
        new = np.flatnonzero((factors != self.factors).any(axis=1))
        if not new.size:
            return
        ends = np.cumsum([field.size for _, field in self.fields])[:-1]
        parts = np.split(factors[new].astype(np.float64), ends, axis=1)
        for (name, field), part in zip(self.fields, parts, strict=True):
            self.batch.expand(name)[new] = field * part.reshape(-1, *field.shape)
        self.batch.set_const(new)
        self.factors[new] = factors[new]


@ft.cache
def load(robot: Robot) -> Any:
    """The robot's model."""
    mujoco = library()
    model = mujoco.MjModel.from_xml_path(str(Path(__file__).parent / robot.file))
    if robot.total_mass is not None:
        mujoco.mj_setTotalmass(model, robot.total_mass)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def library() -> Any:
    """The module mujoco; where it cannot be imported, an error that says how to get it."""
    try:
        import mujoco
        import mujoco.batch
    except ImportError as error:
        raise SettingError(
            f"robots are simulated by MuJoCo 4, which cannot be imported ({error}): "
            "pip install 'mujoco>=4'"
        ) from error
    return mujoco


def threads() -> int:
    """How many cores the simulations may use: SPLAGGER_THREADS, or all of them."""
    text = os.environ.get(THREADS, "")
    if not text and hasattr(os, "sched_getaffinity"):  # Linux: of those that this process may use
        return len(os.sched_getaffinity(0))
    if not text:
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise SettingError(f"{THREADS} must be a whole number above 0, got {text!r}")
    return int(text)
