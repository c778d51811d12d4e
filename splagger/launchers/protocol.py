"""What a launcher is, and the names of launchers: local, ray[:ADDRESS], slurm[:PARTITION]."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from splagger.errors import RunError, SettingError, UserError
from splagger.runs.folder import RunFolder
from splagger.runs.run import Number, Run


@runtime_checkable
class Launcher(Protocol):
    """Trains runs somewhere. The run folders hold all state, so a launcher has none."""

    def launch(self, runs: Sequence[Run], out: Path, save_every: Number) -> Iterator[RunFolder]:
        """Trains all runs; yields their folders as they finish.

        - `runs`: the experiments. A finished one is yielded at once, and an unfinished one continues.
        - `out`: the folder for run folders; every machine must see it at the same path.
        - `save_every`: seconds between checkpoints.
        """
        ...


def parse(
    name: str,
    jobs: int | None = None,
    gpus: Number | None = None,
    cpus: int | None = None,
    hours: Number | None = None,
) -> Launcher:
    """Returns the launcher of a name: local, ray, ray:ADDRESS, slurm or slurm:PARTITION.

    - `jobs`: experiments at a time, for `local`; by default as many as are fastest.
    - `gpus`, `cpus`: those of one experiment, for clusters.
    - `hours`: the time limit of a job, for SLURM.
    """
    kind, colon, place = name.partition(":")
    given = {"jobs": jobs, "gpus": gpus, "cpus": cpus, "hours": hours}
    given = {option: value for option, value in given.items() if value is not None}
    if kind not in _OPTIONS or bool(colon) > bool(place) or (kind == "local" and place):
        raise SettingError(
            f"there is no launcher {name!r}; choose local, ray, ray:ADDRESS, slurm or slurm:PARTITION"
        )
    for option in given.keys() - _OPTIONS[kind]:
        usable = " or ".join(k for k, options in _OPTIONS.items() if option in options)
        raise SettingError(f"{_SHOWN[option]} is not for --on {kind}, but for --on {usable}")
    return _create(kind, place, given)


# The options of each launcher, and their names on the command line.
_OPTIONS = {
    "local": {"jobs"},
    "ray": {"gpus", "cpus"},
    "slurm": {"gpus", "cpus", "hours"},
}
_SHOWN = {
    "jobs": "--jobs",
    "gpus": "--gpus-per-run",
    "cpus": "--cpus-per-run",
    "hours": "--hours",
}


def _create(kind: str, place: str, options: dict[str, Any]) -> Launcher:
    if kind == "ray":
        from splagger.launchers.on_ray import OnRay

        return OnRay(place, **options)
    if kind == "slurm":
        from splagger.launchers.on_slurm import OnSlurm

        return OnSlurm(place, **options)
    from splagger.launchers.local import Local

    return Local(**options)


def has_a_name(run: Run) -> bool:
    """Returns whether names alone describe the run; not so for a method or environment that exists in this process only."""
    try:
        return Run.create(**run.arguments()).digest == run.digest
    except UserError:
        return False


def check_names(runs: Iterable[Run]) -> None:
    """Raises a SettingError for runs that another process cannot train, because it would not find what they are made of."""
    for run in runs:
        if not has_a_name(run):
            raise SettingError(
                f"{run.method.name} on {run.row.name} exists in this process only, and other processes would train "
                "something else; define the method or environment in a module and pass MODULE:NAME, or train here "
                "with jobs=1"
            )


def finished(
    results: Iterable[Callable[[], RunFolder]], despite: type[UserError] = UserError
) -> Iterator[RunFolder]:
    """Yields all results; errors of the kind `despite`, by default all that a user can fix, are raised at the end, as one."""
    errors = []
    for result in results:
        try:
            yield result()
        except despite as error:
            errors.append(error)
    if errors:
        kinds = {type(error) for error in errors}
        raise (kinds.pop() if len(kinds) == 1 else RunError)(" | ".join(map(str, errors)))
