"""Experiments on a Ray cluster: one task per experiment.

The run folder holds the state of an experiment, so that Ray needs to know nothing about it. Ray repeats a task whose
worker or node died, and the task continues from the last checkpoint. If the launching process dies, its tasks end;
the same command continues all of them.
"""

import contextlib
import importlib
import logging
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splagger.errors import Interrupted, RunError, SettingError, UserError, one_line
from splagger.launchers.local import stopped_by_signals
from splagger.launchers.protocol import check_names, finished
from splagger.launchers.worker import Experiment, is_finished, train_here
from splagger.runs.folder import RunFolder
from splagger.runs.run import Number, Run

_SAVING = 15.0  # seconds that the tasks of an interrupted command have to save


@dataclass(frozen=True)
class OnRay:
    """Trains on a Ray cluster.

    - `address`: HOST:PORT of its head; by default the cluster to which this machine belongs.
    - `gpus`: GPUs per experiment, such as 1 or 0.25; by default 1 if the cluster has GPUs.
    - `cpus`: CPU cores that Ray reserves per experiment.
    """

    address: str = ""
    gpus: Number | None = None
    cpus: int = 1

    def launch(self, runs: Sequence[Run], out: Path, save_every: Number) -> Iterator[RunFolder]:
        """Trains all runs; yields their folders as they finish. A run that fails does not stop the others."""
        ray = _import_ray()
        done = [run for run in runs if is_finished(run, out)]
        yield from (RunFolder(run.folder(out)) for run in done)
        runs = [run for run in runs if run not in done]
        if not runs:
            return
        check_names(runs)
        with self._connected(ray), stopped_by_signals():
            gpus = self._gpus(ray)
            self._check_cpus(ray)
            task = ray.remote(
                num_cpus=self.cpus,
                num_gpus=gpus,
                max_calls=1,  # JAX keeps its memory until its process ends
                max_retries=-1,
                retry_exceptions=[Interrupted],
            )(train_here)
            pending = [
                task.options(name=f"{run.row.name} {run.method.name} {run.digest}").remote(
                    Experiment.create(run, out, save_every, gpus)
                )
                for run in runs
            ]
            try:
                yield from finished(_results(ray, pending))
            except KeyboardInterrupt:
                _stop(ray, pending)
                raise Interrupted(
                    "stopped; the same command continues each run from its last checkpoint"
                ) from None

    @contextlib.contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:
        """Connects to the cluster, unless this process already is, and disconnects at the end."""
        if ray.is_initialized():
            yield
            return
        if self.address:
            _check_address(self.address)
        try:
            ray.init(address=self.address or "auto", logging_level=logging.WARNING)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            place = f"at {self.address}" if self.address else "on this machine"
            raise RunError(
                f"there is no Ray cluster {place} ({one_line(error)}); start one by `ray start --head`, or name "
                "its head: --on ray:HOST:6379"
            ) from None
        try:
            yield
        finally:
            ray.shutdown()

    def _gpus(self, ray: Any) -> float:
        """Returns the GPUs per experiment; raises a SettingError if no machine of the cluster has as many."""
        largest = max((node["Resources"].get("GPU", 0.0) for node in _nodes(ray)), default=0.0)
        gpus = float(largest > 0) if self.gpus is None else float(self.gpus)
        if gpus > largest:
            raise SettingError(
                f"--gpus-per-run is {gpus:g}, but no machine of the Ray cluster has more than {largest:g} GPUs; "
                "add one by `ray start --address=HOST:6379`"
            )
        return gpus

    def _check_cpus(self, ray: Any) -> None:
        """Raises a SettingError if no machine of the cluster has as many cores: Ray would wait for one forever."""
        largest = max((node["Resources"].get("CPU", 0.0) for node in _nodes(ray)), default=0.0)
        if self.cpus > largest:
            raise SettingError(
                f"--cpus-per-run is {self.cpus}, but no machine of the Ray cluster has more than {largest:g} cores; "
                "add one by `ray start --address=HOST:6379`"
            )


def _import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise SettingError(
            '--on ray needs Ray, which is not installed; pip install "splagger[cluster]"'
        ) from None


def _check_address(address: str) -> None:
    """Raises a RunError unless something listens there: Ray itself would try for a minute, and then abort."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise SettingError(f"{address!r} is not the address of a Ray cluster; write HOST:6379")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise RunError(
            f"there is no Ray cluster at {address} ({one_line(error)}); start one there by `ray start --head`"
        ) from None


def _nodes(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _results(ray: Any, pending: list[Any]):
    """Yields a function per task, as the tasks end, that returns its folder or raises its error."""
    pending = list(pending)
    while pending:
        ready, pending = ray.wait(pending)
        yield from (lambda ref=ref: _result(ray, ref) for ref in ready)


def _result(ray: Any, ref: Any) -> RunFolder:
    try:
        return RunFolder(ray.get(ref))
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, UserError):
            raise error.cause from None
        raise


def _stop(ray: Any, pending: list[Any]) -> None:
    """Cancels all tasks; those that train receive an interrupt, and save first."""
    for ref in pending:
        ray.cancel(ref)
    ray.wait(pending, num_returns=len(pending), timeout=_SAVING)
