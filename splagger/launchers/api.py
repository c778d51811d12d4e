"""Training of many experiments on any launcher."""

from collections.abc import Sequence
from pathlib import Path

from splagger.launchers.protocol import Launcher, parse
from splagger.runs.folder import SAVE_EVERY, RunFolder
from splagger.runs.run import Number, Run
from splagger.status import write_plan


def train_all(
    runs: Sequence[Run],
    out: str | Path,
    jobs: int = 1,
    save_every: Number = SAVE_EVERY,
    on: str | Launcher = "local",
) -> list[RunFolder]:
    """Trains all runs, each as a separate program; returns their folders in the order of the runs.

    - `out`: the folder for run folders.
    - `jobs`: experiments at a time on this machine.
    - `save_every`: seconds between checkpoints.
    - `on`: a launcher, or its name: "local", "ray", "ray:ADDRESS", "slurm" or "slurm:PARTITION".

    If a run fails, those that have started continue until they end or until Ctrl-C, and no other run starts.
    A run whose members all diverge does not stop the others; its error is raised at the end.
    """
    launcher = parse(on, jobs) if isinstance(on, str) else on
    if len(runs) > 1:
        write_plan(out, runs, on if isinstance(on, str) else type(on).__name__)
    list(launcher.launch(runs, Path(out), save_every))
    return [RunFolder(run.folder(out)) for run in runs]
