"""Training of many experiments on any launcher: `splagger.sweep`, and `train_all` for the commands."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splagger.errors import SettingError
from splagger.launchers.protocol import Launcher, parse
from splagger.methods import Method
from splagger.paper_numbers import PAPER_RATES, PAPER_SEEDS
from splagger.runs.axes import check_given_once
from splagger.runs.folder import SAVE_EVERY, RunFolder
from splagger.runs.run import Number, Run
from splagger.runs.run_checks import check_varied
from splagger.runs.settings import combinations
from splagger.status import write_plan
from splagger.training.announcements import announce, print_notes, rounding_of
from splagger.training.api import curves

if TYPE_CHECKING:
    import pandas


def train_all(
    runs: Sequence[Run],
    out: str | Path,
    jobs: int | None = None,
    save_every: Number = SAVE_EVERY,
    on: str | Launcher = "local",
) -> list[RunFolder]:
    """Trains all runs, each as a separate program and equal ones once; returns their folders in the order of the runs.

    - `out`: the folder for run folders.
    - `jobs`: experiments at a time on this machine; by default several if NVIDIA's Multi-Process Service runs.
    - `save_every`: seconds between checkpoints.
    - `on`: a launcher, or its name: "local", "ray", "ray:ADDRESS", "slurm" or "slurm:PARTITION".

    If a run fails, those that have started continue until they end or until Ctrl-C, and no other run starts.
    A run whose members all diverge does not stop the others; its error is raised at the end.
    """
    launcher = parse(on, jobs) if isinstance(on, str) else on
    asked, runs = runs, _distinct(runs, out)
    if len(runs) > 1:
        write_plan(out, runs, on if isinstance(on, str) else type(on).__name__)
    list(launcher.launch(runs, Path(out), save_every))
    return [RunFolder(run.folder(out)) for run in asked]


def sweep(
    envs: str | Sequence[Any],
    methods: str | Method | Sequence[str | Method],
    rates: Number | Sequence[Number] = PAPER_RATES,
    seeds: int | Sequence[int] = PAPER_SEEDS,
    frames: Number | None = None,
    out: str | Path = "runs",
    settings: Mapping[str, Any] | None = None,
    on: str = "local",
    jobs: int | None = None,
    gpus_per_run: Number | None = None,
    cpus_per_run: int | None = None,
    hours: Number | None = None,
    save_every: Number = SAVE_EVERY,
    episodes: int | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    race: bool = False,
    snapshot_every: Number | None = None,
    **axes: Number | Sequence[Number],
) -> "pandas.DataFrame":
    """Trains each method on each environment; returns all curves in one frame.

    - `on`: where: "local", "ray", "ray:HOST:PORT", "slurm" or "slurm:PARTITION".
    - `jobs`: experiments at a time, with "local"; by default several if NVIDIA's Multi-Process Service runs.
    - `gpus_per_run`, `cpus_per_run`: what a cluster reserves for each experiment.
    - `hours`: the time limit of a job, with "slurm".
    - `vary`: settings with a list of values each, such as {"method.skip": [0, 0.5, 1]}; all combinations are trained.

    The other arguments are those of `splagger.train`. Each experiment is one program with all rates and seeds.
    Finished ones are not trained again, and interrupted ones continue. The columns `env`, `method` and `folder`, and
    one per name in `vary`, say which experiment a row belongs to.
    """
    import pandas

    launcher = parse(on, jobs, gpus_per_run, cpus_per_run, hours)
    grid = {"rates": rates, "seeds": seeds, **axes}
    all_envs: Any = envs if isinstance(envs, list | tuple) else [envs]
    all_methods: Any = methods if isinstance(methods, list | tuple) else [methods]
    if not all_envs or not all_methods:
        raise SettingError("a sweep needs at least one environment and one method")
    settings = {} if settings is None else settings
    experiments: dict[Path, tuple[Run, dict[str, Any]]] = {}
    for values in combinations({} if vary is None else vary, settings):
        check_given_once(axes, {**settings, **values})
        for env, method in itertools.product(all_envs, all_methods):
            given = {**settings, **values}
            run = Run.create(env, method, frames, given, episodes, race, snapshot_every, **grid)
            check_varied(run, values)
            experiments[run.folder(out)] = run, values
    runs = [run for run, _ in experiments.values()]
    if on == "local":
        print_notes(rounding_of(*runs) if frames is not None else [])
        new = [run for run in runs if not RunFolder(run.folder(out)).exists]
        announce(*new, small="settings=splagger.SMALL, rates=1e-3")
    train_all(runs, out, save_every=save_every, on=launcher)
    return pandas.concat(
        [_named(curves(folder), run, values) for folder, (run, values) in experiments.items()],
        ignore_index=True,
    )


def _named(frame: "pandas.DataFrame", run: Run, values: Mapping[str, Any]) -> "pandas.DataFrame":
    """Adds columns that say which experiment the curves belong to."""
    names = {"env": run.row.name, "method": run.method.name, "folder": frame.attrs["folder"]}
    columns = {name: [value] * len(frame) for name, value in {**names, **values}.items()}
    return frame.assign(**columns)


def _distinct(runs: Sequence[Run], out: str | Path) -> list[Run]:
    """Returns each run once: two names may stand for one method."""
    return list({run.folder(out): run for run in runs}.values())
