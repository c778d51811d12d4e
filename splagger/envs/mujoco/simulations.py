"""Simulations on the host, in NumPy and C. Nothing here may call JAX, because JAX waits for the results.

The environment variable SPLAGGER_THREADS limits the number of cores; the results do not depend on it. A
simulation that MuJoCo reports as unstable does not stop the others: it keeps its previous state and is
reported as failed.
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
    """A MuJoCo model. All joints slide or turn on one axis."""

    file: str  # in this folder
    frame_skip: int  # physics steps per action
    total_mass: float | None = None  # None: as in the file
    scaled: tuple[str, ...] = ()  # fields of the model that a task multiplies, element by element


class Simulations:
    """A batch of `count` simulations of one robot; `step` lets in one thread at a time.

    The only state kept between calls is the models of the last tasks: derived constants are recomputed only
    for tasks that changed.
    """

    def __init__(self, robot: Robot, count: int, threads: int):
        mujoco = library()
        kinds = mujoco.mjtWarning
        unstable = kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC
        first, *_, last = (kind.value for kind in unstable)  # these three are consecutive
        self.error = mujoco.batch.SimulationError
        self.model, self.frame_skip = load(robot), robot.frame_skip
        self.duration = self.frame_skip * self.model.opt.timestep
        self.batch = mujoco.batch.Batch(self.model, count, min(threads, count))
        self.control = self.batch.bind("ctrl")
        self.numbers = self.batch.state[:, : 1 + self.model.nq + 2 * self.model.nv]
        self.fields = [(name, getattr(self.model, name).copy()) for name in robot.scaled]
        sizes = [field.size for _, field in self.fields]
        self.ends = np.cumsum(sizes)[:-1]
        self.factors = np.full((count, sum(sizes)), np.nan, np.float32)
        # Of positions, velocities and accelerations.
        self.warnings = self.batch.warning[:, first : last + 1, 1]
        self.warned = self.warnings.copy()
        self.lock = threading.Lock()

    @staticmethod
    @ft.lru_cache(maxsize=16)
    def shared(robot: Robot, count: int, threads: int) -> "Simulations":
        """Returns the simulations for one batch size; they are created once."""
        return Simulations(robot, count, threads)

    def step(self, numbers: np.ndarray, action: np.ndarray, factors: np.ndarray):
        """Returns (numbers, speed, failed) after one action in each simulation; leading axis [count]."""
        with self.lock:
            self._set_tasks(factors)
            self.numbers[:] = numbers
            self.control[:] = action
            finite = np.isfinite(action)
            if not finite.all():  # a diverged agent; its reward is still not finite
                self.control[~finite] = 0.0
            failed = self._run()
            after = self.numbers.copy()
        if failed.any():
            after[failed] = numbers[failed]
        return after, (after[:, 1] - numbers[:, 1]) / self.duration, failed

    def _run(self) -> np.ndarray:
        """Steps the batch; returns which simulations are not finite or were reset by MuJoCo."""
        np.copyto(self.warned, self.warnings)
        # Raised for those in `status`; the others were stepped.
        with contextlib.suppress(self.error):
            self.batch.step(nstep=self.frame_skip)
        failed = (self.warnings != self.warned).any(axis=1)
        failed |= self.batch.status != 0
        return failed | ~np.isfinite(self.numbers).all(axis=1)

    def _set_tasks(self, factors: np.ndarray) -> None:
        """Updates the models whose task changed, and the constants that MuJoCo derives from them."""
        if np.array_equal(factors, self.factors):
            return
        new = np.flatnonzero((factors != self.factors).any(axis=1))
        parts = np.split(factors[new].astype(np.float64), self.ends, axis=1)
        for (name, field), part in zip(self.fields, parts, strict=True):
            self.batch.expand(name)[new] = field * part.reshape(-1, *field.shape)
        self.batch.set_const(new)
        self.factors[new] = factors[new]


@ft.cache
def load(robot: Robot) -> Any:
    """Loads the robot's model."""
    mujoco = library()
    model = mujoco.MjModel.from_xml_path(str(Path(__file__).parent / robot.file))
    if robot.total_mass is not None:
        mujoco.mj_setTotalmass(model, robot.total_mass)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def library() -> Any:
    """Imports mujoco; if that fails, raises a SettingError that says how to install it."""
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
    """Returns the number of cores that the simulations use: SPLAGGER_THREADS, or all."""
    text = os.environ.get(THREADS, "")
    if not text and hasattr(os, "sched_getaffinity"):  # Linux: the cores that this process may use
        return len(os.sched_getaffinity(0))
    if not text:
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise SettingError(f"{THREADS} must be a positive integer, got {text!r}")
    return int(text)
