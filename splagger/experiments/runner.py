"""Executing a run: blocks of updates, and between them progress, curves, checkpoints and interruptions."""

import contextlib
import math
import queue
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from splagger.envs import EnvError, plain_failures
from splagger.experiments import progress
from splagger.experiments.events import Events
from splagger.experiments.grid import Number, Point, Run
from splagger.experiments.program import Program, compile_grid
from splagger.experiments.provenance import provenance
from splagger.experiments.records import RunError, RunFolder
from splagger.ppo.train import TrainState


class Interrupted(Exception):
    """The run was asked to stop; what it had reached is saved."""


class Execution:
    """One stretch of work on a run, from its last checkpoint (or its start) to its end or an interruption."""

    def __init__(self, run: Run, folder: RunFolder, save_every: Number, view: progress.Silent):
        self.run, self.folder, self.view, self.save_every = run, folder, view, save_every
        self.config, self.points = run.config, run.points
        self.rows: list[dict[str, Any]] = []
        self.stopped: dict[str, int] = {}
        self.record: dict[str, Any] = {}
        self.update, self.seconds = 0, 0.0

    def work(self) -> None:
        """Trains to the end; on a signal, saves and raises `Interrupted`."""
        program = compile_grid(self.config, self.points)
        state = self._resume(program)
        events = Events(self.folder.path / "tensorboard", self.points, self._frames())
        saved, asked = time.monotonic(), _Asked(self.view)
        try:
            with asked, self.view:
                needed = ("block",) if state else ("init", "evaluate", "block")
                self.record["compile_seconds"] = round(program.compile(*needed), 1)
                self.view.begin(self.record["compile_seconds"])
                state = state or self._begin(program)
                while self.update < self.config.updates and not asked.to_stop and self._alive():
                    state = self._block(program, state, events)
                    if time.monotonic() - saved > self.save_every:
                        self._save(program.pack(state))
                        saved = time.monotonic()
        finally:
            events.close()
        self._save(
            program.pack(state), done=self.update >= self.config.updates or not self._alive()
        )
        if asked.to_stop and self.update < self.config.updates:
            raise Interrupted

    def _begin(self, program: Program) -> TrainState:
        state = program.init()
        metrics = program.evaluate(state)
        if not np.isfinite(metrics["return"]).any():
            raise RunError(
                f"{self.run.row.name}: the return is {metrics['return'][0]} before any training; look for NaN or "
                "infinity in its rewards and observations"
            )
        self._absorb(metrics, None)
        return state

    def _resume(self, program: Program) -> TrainState | None:
        """The state of the last checkpoint, with the curves cut back to it."""
        restored = self.folder.restore(program.example)
        if restored is None:
            return None
        self.update, saved = restored
        record = self.folder.read()
        self.seconds = record.get("seconds", 0.0)
        self.stopped = {k: u for k, u in record.get("stopped", {}).items() if u <= self.update}
        self.rows = [row for row in self.folder.read_curves() if row["update"] <= self.update]
        return program.unpack(saved)

    def _block(self, program: Program, state: TrainState, events: Events) -> TrainState:
        started = time.monotonic()
        state, metrics = _listening(program.block, state)
        elapsed = time.monotonic() - started
        self.update += self.config.ppo.eval_interval
        self.seconds += elapsed
        self._absorb(metrics, events)
        frames = self.config.ppo.batch * self.config.ppo.eval_interval * len(self.points)
        self.view.show(
            self.update, self._frames(), frames / elapsed, [float(r) for r in metrics["return"]]
        )
        return state

    def _absorb(self, metrics: dict[str, np.ndarray], events: Events | None) -> None:
        """Appends a row for each run that is still well, and reports those that are not."""
        for index, point in enumerate(self.points):
            values = {name: float(column[index]) for name, column in sorted(metrics.items())}
            name = _name(point)
            if name in self.stopped:
                continue
            if not all(math.isfinite(v) for v in values.values()):
                self.stopped[name] = self.update
                others = "the other runs go on" if self._alive() else "no run is left"
                self.view.note(
                    f"stopped: rate {point.rate:g}, seed {point.seed} is not finite at update {self.update}; {others}"
                )
                continue
            row = {
                "update": self.update,
                "frames": self._frames(),
                **point._asdict(),
                **_ordered(values),
            }
            self.rows.append(row)
            if events:
                events.add(index, row)

    def _save(self, state: Any, done: bool = False) -> None:
        """Curves first, then the state: what is on disk never lacks rows that the state implies."""
        with self.room():
            self.folder.write_curves(self.rows)
            self.folder.save(self.update, state)
            self._write_record(done)

    @contextlib.contextmanager
    def room(self):
        """A full disk is told as such."""
        try:
            yield
        except OSError as error:
            reason = getattr(error, "strerror", None) or error
            raise RunError(
                f"cannot write to {self.folder.path} ({reason}); the last checkpoint is still whole: "
                "make room and run the same command again"
            ) from error

    def _write_record(self, done: bool) -> None:
        total = self._frames() * len(self.points)
        self.record |= {
            "update": self.update,
            "frames": self._frames(),
            "finished": done,
            "seconds": round(self.seconds, 3),
            "frames_per_second": round(total / self.seconds, 1) if self.seconds else None,
            "stopped": self.stopped,
        }
        self.folder.write(self.record)

    def _frames(self) -> int:
        return self.update * self.config.ppo.batch

    def _alive(self) -> bool:
        return len(self.stopped) < len(self.points)


def _listening(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` in a thread of its own: Python hears signals only between steps of the main one."""
    done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def work():
        try:
            done.put((function(*args), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    while True:
        with contextlib.suppress(queue.Empty):
            result, error = done.get(timeout=0.2)
            break
    if error is not None:
        raise error
    return result


class _Asked:
    """Notes SIGINT and SIGTERM, so that a block is finished and saved; a second SIGINT is obeyed at once."""

    def __init__(self, view: progress.Silent):
        self.to_stop, self.previous, self.view = False, {}, view

    def __enter__(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.previous[number] = signal.signal(number, self._note)
            except ValueError:  # not in the main thread: interruptions are its business
                return self
        return self

    def __exit__(self, *_):
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _note(self, number, frame):
        if self.to_stop:
            raise KeyboardInterrupt
        self.to_stop = True
        self.view.note(
            "stopping after this block of updates, to save it; once more stops at once, without saving"
        )


def execute(
    run: Run,
    out: str | Path = "runs",
    force: bool = False,
    save_every: Number = 120.0,
    show: bool | Literal["lines"] = True,
) -> tuple[RunFolder, bool]:
    """(folder, whether anything had to be done). A finished run is left alone, an unfinished one goes on."""
    folder = RunFolder(run.folder(out))
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write to {out} ({error.strerror}); choose another --out") from None
    with folder.locked():
        if force:
            folder.clear()
        record = folder.read() if folder.exists else {}
        exhausted = len(record.get("stopped", {})) == len(run.points)
        if record.get("finished") and (exhausted or record["update"] >= run.config.updates):
            return folder, False
        title = f"{run.row.name} · {run.method.name} · {len(run.points)} runs"
        view = progress.choose(title, run.points, run.config.updates, show)
        execution = Execution(run, folder, save_every, view)
        execution.record = record or {
            "run": run.describe(),
            "provenance": provenance(run.command()),
        }
        execution.record["arguments"] = run.arguments()
        execution.record["finished"] = False
        with execution.room():
            folder.write(execution.record)
        try:
            with plain_failures():
                execution.work()
        except EnvError as error:
            raise RunError(
                f"{error}. Nothing is lost but what came after the last checkpoint: mend the environment, and "
                "the same command goes on"
            ) from error
    return folder, True


def _name(point: Point) -> str:
    return ",".join(f"{k}={v!r}" for k, v in point._asdict().items())


def _ordered(values: dict[str, float]) -> dict[str, float]:
    """Returns first, then everything that training reports; before training there is nothing to report."""
    returns = {k: v for k, v in values.items() if k.startswith("return")}
    return returns | {name: values.get(name, math.nan) for name in TRAINING_METRICS}


TRAINING_METRICS = (
    "policy_loss",
    "value_loss",
    "entropy",
    "kl",
    "reconstruction_loss",
    "encoder_grad_norm",
    "policy_grad_norm",
    "clip_fraction",
    "first_ratio_error",
    "explained_variance",
)
