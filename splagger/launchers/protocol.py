"""What a launcher is, and the names of launchers: local, ray[:ADDRESS], slurm[:PARTITION]."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from splagger.errors import DivergedError, SettingError
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


def parse(name: str, jobs: int = 1) -> Launcher:
    """Returns the launcher of a name; `jobs` is the number of experiments at a time of `local`."""
    kind, _, place = name.partition(":")
    if kind == "local" and not place:
        from splagger.launchers.local import Local

        return Local(jobs)
    raise SettingError(f"there is no launcher {name!r}; choose local")


def finished(results: Iterable[Callable[[], RunFolder]]) -> Iterator[RunFolder]:
    """Yields all results. Waits for all of them before it raises that members of some run all diverged."""
    diverged = []
    for result in results:
        try:
            yield result()
        except DivergedError as error:
            diverged.append(error)
    if diverged:
        raise DivergedError(" | ".join(map(str, diverged)))
