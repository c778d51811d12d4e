"""Opens the folder of a run: what to train is decided here, and errors say what was kept and how to continue."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from splagger.bridges import unwrapped_errors
from splagger.errors import DivergedError, EnvError, RunError, one_line
from splagger.files.storage import writing
from splagger.runs.folder import RunFolder
from splagger.runs.provenance import provenance
from splagger.runs.record import RunRecord
from splagger.runs.run import Run
from splagger.runs.run_checks import check_not_mistaken
from splagger.training.capacity import check_memory


def open_run(
    run: Run, folder: RunFolder, out: str | Path, force: bool, stack: contextlib.ExitStack
) -> RunRecord | None:
    """Locks the folder on `stack` and writes the record of a run that starts or continues; None for a finished one."""
    if not folder.exists:
        check_not_mistaken(run)
        check_memory(run)
    with writing(f"to {out}", "choose another --out"):
        folder.path.mkdir(parents=True, exist_ok=True)
    stack.enter_context(folder.locked())
    if force:
        folder.clear()
    record = folder.record() if folder.exists else None
    if record is not None and (record.failed or len(record.stopped) == run.size):
        raise failure(folder, record)
    if record is not None and record.finished and record.update >= run.config.updates:
        return None
    record = record or RunRecord(run.describe(), {}, provenance(run.command()))
    record = replace(
        record,
        arguments=run.arguments(),
        finished=False,
        provenance=_with_command(record.provenance, run.command()),
    )
    with writing_run(folder):
        folder.write_record(record)
    return record


def earlier_snapshots(folder: RunFolder) -> int | None:
    """Returns the frames between the snapshots with which a run was begun; None without any."""
    every = folder.record().arguments.get("snapshot_every") if folder.exists else None
    return int(every) if every else None


def already_finished(run: Run, folder: RunFolder, force: str, more: str = "") -> str:
    """Returns the note about a finished run.

    - `force`: what starts it over: an option or an argument.
    - `more`: what extends it, if this is possible.
    """
    lacks = run.snapshot_every is not None and not folder.snapshots()
    hints = [f"{force} starts over", more * run.can_be_extended, "it has no snapshots" * lacks]
    text = (
        f"already finished at {folder.record().frames:,} frames ({', '.join(filter(None, hints))})"
    )
    return f"{text}: {folder.path}"


def _with_command(provenance: dict[str, Any], command: str) -> dict[str, Any]:
    """Adds a command to those that contributed to a run; the last one says what the run is now."""
    recorded = provenance.get("commands")
    before = recorded if isinstance(recorded, list) else [provenance.get("command", command)]
    commands = before if before[-1:] == [command] else [*before, command]
    return provenance | {"command": command, "commands": commands}


def failure(folder: RunFolder, record: RunRecord) -> DivergedError:
    """Returns the error of a run whose members all diverged, with what was kept and how to start over."""
    saved = folder.saved_updates()
    kept = f"the checkpoint of update {saved[-1]} stays" if saved else "there is no checkpoint"
    reason = record.failed or "every member diverged (NaN or infinity)"
    return DivergedError(
        f"{folder.path}: {reason}; {kept}. Train with lower --rates; --force starts this run over"
    )


@contextlib.contextmanager
def writing_run(folder: RunFolder) -> Iterator[None]:
    """Turns an OSError, such as a full disk, into a RunError that says what was kept and how to continue."""
    try:
        yield
    except OSError as error:
        saved = folder.saved_updates()
        kept = f"the checkpoint of update {saved[-1]} is intact" if saved else "nothing was saved"
        raise RunError(
            f"cannot write to {folder.path} ({error.strerror or error}); {kept}: free some space and run the "
            "same command again"
        ) from error


@contextlib.contextmanager
def advice(folder: RunFolder) -> Iterator[None]:
    """Turns an error of the environment, or a lack of memory, into a RunError that says how to continue."""
    try:
        with unwrapped_errors():
            yield
    except EnvError as error:
        lost = "Progress since the last checkpoint is lost. " if folder.saved_updates() else ""
        again = " to continue" if lost else ""
        raise RunError(
            f"{error}. {lost}Fix the environment and run the same command again{again}"
        ) from error
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise RunError(
            f"out of memory ({one_line(error)}). Other programs may use the {jax.default_backend().upper()}: end them "
            "and run the same command again, which continues from the last checkpoint. Or train fewer seeds or rates at a time"
        ) from None
