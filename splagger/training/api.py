"""`splagger.train` and `splagger.curves`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from splagger import hosts
from splagger.errors import RunError
from splagger.methods import Method
from splagger.paper_numbers import PAPER_RATES, PAPER_SEEDS
from splagger.runs.axes import check_given_once
from splagger.runs.folder import SAVE_EVERY, RunFolder, find_run
from splagger.runs.run import Number, Run
from splagger.training.announcements import announce, print_notes, rounding_of
from splagger.training.opening import already_finished
from splagger.training.runner import OnMetrics, execute

if TYPE_CHECKING:
    import pandas


def train(
    env: Any,
    method: str | Method,
    rates: Number | Sequence[Number] = PAPER_RATES,
    seeds: int | Sequence[int] = PAPER_SEEDS,
    frames: Number | None = None,
    out: str | Path = "runs",
    settings: Mapping[str, Any] | None = None,
    force: bool = False,
    show: bool = True,
    save_every: Number = SAVE_EVERY,
    episodes: int | None = None,
    race: bool = False,
    snapshot_every: Number | None = None,
    on_metrics: OnMetrics | None = None,
    **axes: Number | Sequence[Number],
) -> "pandas.DataFrame":
    """Trains all rates × seeds in one program and returns the curves, one row per evaluation and member.

    - `env`: a name, a row of `ENVS`, an environment of our protocol, or the result of `splagger.from_gymnasium`,
      `splagger.from_gymnax` or `splagger.from_xland`.
    - `method`: a name, an import path ("package.module:name") or a `Method`.
    - `rates`: learning rates.
    - `seeds`: a list of seeds, or their number.
    - `frames`: environment steps per member; by default those of the environment's row.
    - `out`: the folder for run folders. A finished run is not trained again; an interrupted one continues.
    - `settings`: overrides such as {"ppo.entropy": 0}; `splagger.SMALL` has those of a compact network for CPUs.
    - `force`: start over.
    - `show`: print progress.
    - `save_every`: seconds between checkpoints.
    - `episodes`: episodes per task.
    - `race`: stop rates that are clearly behind at 10, 25 and 50% of training.
    - `snapshot_every`: frames between snapshots of all agents, which `splagger.load(folder, at=FRAMES)` returns.
    - `on_metrics`: is called with each new row of the curves, a dictionary, for W&B, MLflow or any other logger.
    - `axes`: other axes to sweep: `entropy_weights`, `kl_weights`, `temperatures`.

    The path of the run folder is in the frame's `attrs["folder"]`; `splagger.load` takes it.
    """
    run = Run.create(
        env,
        method,
        frames,
        settings,
        episodes,
        race,
        snapshot_every,
        rates=rates,
        seeds=seeds,
        **axes,
    )
    check_given_once(axes, settings)
    if show and hosts.is_first():
        _announce(run, frames, force or not RunFolder(run.folder(out)).exists)
    folder, worked = execute(run, out, force, save_every, show, on_metrics)
    if show and not worked and hosts.is_first():
        print_notes([already_finished(run, folder, "force=True")])
    return hosts.from_first(lambda: curves(folder.path))


def _announce(run: Run, frames: Number | None, is_new: bool) -> None:
    if frames is not None:
        print_notes(rounding_of(run))
    if is_new:
        announce(run, small="settings=splagger.SMALL, rates=1e-3")


def curves(path: str | Path) -> "pandas.DataFrame":
    """Returns the curves of a run folder, or of the only one below a folder."""
    folder = find_run(path)
    folder.record()  # raises if it is damaged
    frame = folder.curves()
    if frame is None:
        raise RunError(f"{path} has not reached its first evaluation yet")
    frame.attrs["folder"] = str(folder.path)
    return frame
