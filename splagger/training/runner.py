"""Executes a run: blocks of updates, and between them progress, curves, checkpoints and interruptions."""

import contextlib
import math
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from splagger import hosts
from splagger.errors import Interrupted, RunError, SettingError, kind_of
from splagger.files.event_file import EventFiles
from splagger.files.storage import sha256
from splagger.ranges import Seconds, check
from splagger.runs.checkpoints import (
    remove_snapshots,
    restore_checkpoint,
    save_checkpoint,
    save_snapshot,
    snapshot_size,
)
from splagger.runs.curves import format_curves, parse_curves
from splagger.runs.folder import EVENTS, SAVE_EVERY, RunFolder
from splagger.runs.named_arrays import from_named_leaves, named_leaves
from splagger.runs.record import RunRecord, in_words
from splagger.runs.run import Number, Point, Run
from splagger.status import Reporter
from splagger.tables import count
from splagger.training import progress
from splagger.training.health import Health
from splagger.training.opening import (
    advice,
    earlier_snapshots,
    failure,
    open_run,
    writing_run,
)
from splagger.training.program import Program, States, compile_grid
from splagger.training.race import Race
from splagger.training.stopping import AbandonedError, StopRequest

TRAINING_METRICS = (
    "reward_per_step",
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


FIRST_SAVE = 20.0  # seconds until the first checkpoint, if checkpoints are not more frequent anyway
LARGE = 1e9  # bytes of snapshots from which on their size is printed
OnMetrics = Callable[[dict[str, Any]], Any]


class Execution:
    """Training of a run from its start or last checkpoint to its end or an interruption."""

    program: Program  # of the members that still train
    state: States | None = None  # of the same members; None before the run begins
    events: EventFiles | None = None  # in the first process only
    update, seconds = 0, 0.0
    saved: int | None = None  # the update of the last checkpoint

    def __init__(
        self,
        run: Run,
        folder: RunFolder,
        record: RunRecord,
        save_every: Number,
        view: progress.Silent,
        on_metrics: OnMetrics | None,
        reporter: Reporter | None,
    ):
        self.run, self.folder, self.record = run, folder, record
        self.view, self.save_every = view, save_every
        self.on_metrics, self.reporter = on_metrics, reporter
        self.config, self.race = run.config, Race(run)
        self.rows: list[dict[str, Any]] = []
        self.health = Health(run.config, run.points, run.member, view)

    @property
    def points(self) -> list[Point]:
        """The members that still train."""
        return self.race.points

    def work(self) -> None:
        """Trains to the end; on a signal, saves and raises `Interrupted`."""
        self.group = compile_grid(self.config, self.race.groups[0])
        self.program = self.race.program(self.group)
        self._resume()
        self._note_snapshots()
        if hosts.is_first():
            with writing_run(self.folder):
                events = self.folder.path / EVENTS
                self.events = EventFiles(events, self.run.points, self._frames())
        with StopRequest(self.view) as stop:  # also of further signals while it saves
            self._work(stop)

    def _work(self, stop: StopRequest) -> None:
        saved = time.monotonic()
        try:
            with self.view:
                needed = ["evaluate", "updates"] if self.state else ["init", "evaluate", "updates"]
                seconds = round(stop.call(self.program.compile, *needed, worthwhile=False), 1)
                self.record = replace(self.record, compile_seconds=seconds)
                self.view.begin(seconds)
                if self.state is None:
                    self._begin(stop)
                (stopped,) = hosts.anywhere(stop.requested)
                while self.update < self.config.updates and not stopped and self.health.alive:
                    self._block(stop)
                    self._race()
                    self._save_snapshot()
                    # The last checkpoint is written below: it says that the run is finished.
                    is_due = (
                        self.update < self.config.updates
                        and time.monotonic() - saved > self._interval()
                    )
                    stopped, is_due = hosts.anywhere(stop.requested, is_due)
                    if self.health.alive and is_due and not stopped:
                        self._save()
                        saved = time.monotonic()
                        (stopped,) = hosts.anywhere(stop.requested)
        except AbandonedError:
            raise Interrupted(self._lost(time.monotonic() - saved), abandoned=True) from None
        if not self.health.alive:
            self._fail()
        self._save(done=self.update >= self.config.updates)
        if stopped and self.update < self.config.updates:
            raise Interrupted("stopped and saved; the same command continues from here")

    def _interval(self) -> Number:
        """Returns the seconds between two checkpoints; the first one comes soon, so that a stop loses little."""
        return self.save_every if self.saved is not None else min(FIRST_SAVE, self.save_every)

    def _lost(self, seconds: float) -> str:
        """Says what a stop without saving has lost; `seconds` is the time since the last checkpoint."""
        if self.saved is None:
            return "stopped before the first checkpoint; the same command starts from the beginning"
        return (
            f"stopped; the last {seconds:.0f} s are lost, and the same command continues from update "
            f"{self.saved} of {self.config.updates}"
        )

    def _race(self) -> None:
        """Stops the members whose rate is clearly behind."""
        losers = self.race.losers(self.rows, self.update) if self.health.alive else []
        if not losers:
            return
        raced = {self.run.member(point): self.update for group in losers for point in group}
        self.record = replace(self.record, raced=self.record.raced | raced)
        self._narrow(losers, self.program.pack(self.state))
        rates = ", ".join(f"{rate:g}" for rate in dict.fromkeys(group[0].rate for group in losers))
        self.view.note(
            f"race, update {self.update}: clearly behind, stopped: rate {rates}; {len(self.points)} of "
            f"{self.run.size} runs continue"
        )

    def _narrow(self, losers: Sequence[Sequence[Point]], packed: Any) -> None:
        """Goes on without some groups; `packed` is the state of all that trained so far."""
        kept = self.race.stop(losers, packed)
        self.health.keep(self.points)
        self.view.narrow(len(self.points))
        self.program = self.race.program(self.group)
        self.state = self.program.unpack(kept)

    def _begin(self, stop: StopRequest) -> None:
        self.state = stop.call(self.program.init)
        metrics = stop.call(self.program.evaluate, self.state)
        self.health.check_environment(metrics)
        if not np.isfinite(metrics["return"]).any():
            raise RunError(
                f"{self.run.row.name}: the return is {metrics['return'][0]} before any training; look for NaN or "
                "infinity in its rewards and observations"
            )
        self._append(metrics)
        self.view.untrained([float(r) for r in metrics["return"]])
        self._save_snapshot()

    def _resume(self) -> None:
        """Restores state, curves and progress from the last checkpoint, if there is one."""
        found = hosts.from_first(self._read)
        hosts.from_first(lambda: self._forget(-1 if found is None else found[0]))
        if found is None:
            self.record = replace(self.record, raced={})
            return
        self.update, leaves, record, curves = found
        self.saved, self.seconds = self.update, record.seconds
        self.view.note(f"continues from the checkpoint of update {self.update}")
        self.health.stopped = {k: u for k, u in record.stopped.items() if u <= self.update}
        if curves is not None:
            self.rows = curves[curves["update"] <= self.update].to_dict("records")
        raced = {name: u for name, u in record.raced.items() if u <= self.update}
        self.record = replace(self.record, raced=raced)
        packed = from_named_leaves(self.program.example, leaves)
        stopped = [g for g in self.race.groups if self.run.member(g[0]) in raced]
        if stopped:
            self._narrow(stopped, packed)
        else:
            self.state = self.program.unpack(packed)

    def _read(self) -> tuple[int, dict[str, np.ndarray], RunRecord, Any] | None:
        """Reads the last checkpoint: its update, arrays, record and curves."""
        found = restore_checkpoint(self.folder, self.program.example, self.view.note)
        if found is None:
            return None
        path, plan = self.folder.path, self.record.plan
        curves = (
            self.folder.curves()
            if found.curves is None
            else parse_curves(found.curves.encode(), path, plan=plan)
        )
        record = found.record or self.folder.record()
        return found.update, named_leaves(found.state), record, curves

    def _block(self, stop: StopRequest) -> None:
        started = time.monotonic()
        self.state, metrics = stop.call(self.program.block, self.state)
        elapsed = time.monotonic() - started
        self.update += self.config.ppo.eval_interval
        self.seconds += elapsed
        self._append(metrics)
        frames = self.config.ppo.batch * self.config.ppo.eval_interval * len(self.points)
        latest = dict(zip(self.points, map(float, metrics["return"]), strict=True))
        returns = [latest.get(point, math.nan) for point in self.run.points]
        self.view.show(self.update, self._frames(), frames / elapsed, returns)
        if self.reporter:
            updates = self.config.updates - self.update
            left = updates * self.config.ppo.batch * len(self.points)
            self.reporter.show(self.update, frames / elapsed, left)

    def _append(self, metrics: dict[str, np.ndarray]) -> None:
        """Appends a row for each healthy member."""
        for point, values in self.health.check(metrics, self.update):
            row = {
                "update": self.update,
                "frames": self._frames(),
                **point._asdict(),
                **_ordered(values),
            }
            self.rows.append(row)
            if self.on_metrics:
                self.on_metrics(dict(row))  # theirs to change
            if self.events and self.update:
                with writing_run(self.folder):
                    self.events.add(point, row)

    def _forget(self, after: int) -> None:
        """Removes those snapshots of later updates that this process will make again."""
        found = [update for update in self.folder.snapshots() if update > after]
        again = [u for u in found if u <= self.config.updates and self.run.has_snapshot(u)]
        with writing_run(self.folder):
            remove_snapshots(self.folder, again)

    def _note_snapshots(self) -> None:
        """Says how large the snapshots will be, if they are large, and if the first ones are missing."""
        if self.run.snapshot_every is None:
            return
        if self.update > 0 and not self.folder.snapshots():
            self.view.note(
                f"snapshots begin after {self._frames():,} frames, where this run continues"
            )
        left, ppo = self.config.updates - self.update, self.config.ppo
        number = 1 + min(left // ppo.eval_interval, left * ppo.batch // self.run.snapshot_every)
        size = snapshot_size(self.program.example)
        if number * size > LARGE:
            self.view.note(f"{number:,} snapshots of {size / 1e6:,.0f} MB each")

    def _save_snapshot(self) -> None:
        """Writes a snapshot if one is due. It comes before the checkpoint, so that resumed runs lack none."""
        if not self.run.has_snapshot(self.update) or not self.health.alive:
            return
        whole = self.race.whole(self.program.pack(self.state))
        if not hosts.is_first():
            return
        try:
            save_snapshot(self.folder, self.update, whole)
        except OSError as error:  # the checkpoint decides whether training can go on
            reason = error.strerror or error
            self.view.note(
                f"no snapshot after {self._frames():,} frames: cannot write it ({reason})"
            )

    def _save(self, done: bool = False) -> None:
        """Writes a checkpoint with everything in it, then the copies of curves and record in the run folder."""
        packed, curves = self.program.pack(self.state), self._describe(finished=done)
        if not hosts.is_first():
            return
        with writing_run(self.folder):
            if self.saved != self.update:
                whole = self.race.whole(packed)
                save_checkpoint(self.folder, self.update, whole, self.record, curves)
                self.saved = self.update
            self.folder.write_curves(curves)
            self.folder.write_record(self.record)

    def _fail(self) -> None:
        """Records that every member diverged. The last checkpoint stays, with members that were healthy."""
        raced = len(self.record.raced)
        others = f"; {count(raced, 'other')} had stopped in the race" * bool(raced)
        curves = self._describe(failed=self.health.failure() + others)
        if hosts.is_first():
            with writing_run(self.folder):
                self.folder.write_curves(curves)
                self.folder.write_record(self.record)
        raise failure(self.folder, self.record)

    def _describe(self, **changes: Any) -> str:
        """Updates the record; returns the text of curves.csv."""
        updates = self.update * len(self.points) + sum(self.record.raced.values())
        total = updates * self.config.ppo.batch
        curves = format_curves(self.rows)
        self.record = replace(
            self.record,
            update=self.update,
            frames=self._frames(),
            seconds=round(self.seconds, 3),
            frames_per_second=round(total / self.seconds, 1) if self.seconds else None,
            stopped=self.health.stopped,
            curves_sha256=sha256(curves),
            **changes,
        )
        return curves

    def _frames(self) -> int:
        return self.update * self.config.ppo.batch


def execute(
    run: Run,
    out: str | Path = "runs",
    force: bool = False,
    save_every: Number = SAVE_EVERY,
    show: bool | Literal["lines"] = True,
    on_metrics: OnMetrics | None = None,
) -> tuple[RunFolder, bool]:
    """Trains a run to its end; returns (folder, whether there was anything to do).

    A finished run is left alone, and an unfinished one continues from its last checkpoint. `on_metrics` is called
    with each new row of the curves.
    """
    check("save_every", save_every, Seconds)
    if on_metrics is not None and not callable(on_metrics):
        raise SettingError(f"on_metrics must be a function, got {kind_of(on_metrics)}")
    hosts.check_same((run.digest, run.config.updates, run.snapshot_every), run.command())
    folder = RunFolder(run.folder(out))
    if run.snapshot_every is None and not force:
        # A run that was begun with snapshots has them to its end.
        run = replace(run, snapshot_every=hosts.from_first(lambda: earlier_snapshots(folder)))
    with contextlib.ExitStack() as stack:
        record = hosts.from_first(lambda: open_run(run, folder, out, force, stack))
        if record is None:
            return folder, False
        runs = "1 run" if len(run.points) == 1 else f"{len(run.points)} runs"
        words = textwrap.shorten(", ".join(in_words(dict(run.overrides))), 60, placeholder=" …")
        title = " · ".join(filter(None, (run.row.name, run.method.name, words, runs)))
        view = progress.choose(title, run.points, run.config.updates, show and hosts.is_first())
        if hosts.is_first():
            reporter = stack.enter_context(Reporter(folder, run.config.updates, record.update))
        else:
            reporter = on_metrics = None
        with advice(folder):
            Execution(run, folder, record, save_every, view, on_metrics, reporter).work()
    return folder, True


def _ordered(values: dict[str, float]) -> dict[str, float]:
    """Sorts columns: first the returns, then all training metrics, which are NaN before training."""
    returns = {k: v for k, v in values.items() if k.startswith("return")}
    return returns | {name: values.get(name, math.nan) for name in TRAINING_METRICS}
