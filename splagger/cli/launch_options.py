"""Options of the commands that train many experiments: where, and with how much of a machine each."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro

from splagger.cli.options import written
from splagger.ranges import Cores, Gpus, Hours

if TYPE_CHECKING:
    from splagger.launchers import Launcher


@dataclass(frozen=True)
class Where:
    """Where experiments train."""

    on: Annotated[str, tyro.conf.arg(metavar="PLACE")] = "local"
    """local, ray, ray:HOST:PORT, slurm or slurm:PARTITION. All machines of a cluster must share the output folder."""
    gpus_per_run: Annotated[Gpus | None, written("NUMBER")] = None
    """GPUs per experiment on a cluster; on Ray also a part of one, such as 0.25. By default 1, and 0 on a Ray cluster without GPUs."""
    cpus_per_run: Annotated[Cores | None, written("COUNT")] = None
    """CPU cores that a cluster reserves per experiment; 1 by default."""
    hours: Annotated[Hours | None, written("HOURS")] = None
    """Time limit of a SLURM job, 24 by default. A longer experiment continues in the next job."""

    def launcher(self, jobs: int | None = None) -> "Launcher":
        """Returns the launcher; `jobs` is the number of experiments at a time on this machine, if it is given."""
        from splagger.launchers import parse

        return parse(self.on, jobs, self.gpus_per_run, self.cpus_per_run, self.hours)
