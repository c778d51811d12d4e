"""Random command lines of every command: each is accepted with reason, or refused in one line.

python -m tests.storm.commands --tries 3000 --seed 0

Try number n of seed s is try 0 of seed s + n. Training and other long work is replaced where it would begin.
"""

import collections
import contextlib
import faulthandler
import io
import os
import random
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from splagger import agents, cli, inspection
from splagger.agents import loading
from splagger.analysis import api
from splagger.cli import status_command
from splagger.launchers import local
from splagger.training import bench, runner
from tests.storm import words
from tests.storm.outcome import Outcome, parse_arguments
from tests.tiny import _compile_once, tiny

LIMIT = 10.0  # seconds of CPU time: the machine may be busy with other work
WATCHDOG = 300.0  # seconds after which a process that no signal reaches is ended
ACCEPTED, REFUSED, USAGE = "accepted", "refused", "usage"  # the ends that are not failures


class Reached(BaseException):
    """Raised where long work would begin."""


class Hang(BaseException):
    """Raised when the time is over."""


def begin(*_, **__):
    raise Reached


# Long work: (object, attribute).
LONG = [
    (runner.Execution, "work"),
    (local.futures, "ProcessPoolExecutor"),
    (bench, "compile_grid"),
    (agents, "evaluate"),
    (agents, "watch"),
    (api, "measure"),
    (api, "fresh"),
    (inspection, "inspect"),
    (status_command, "_pause"),
]


@contextlib.contextmanager
def sandbox(run: Path | None) -> Iterator[None]:
    """A folder with good and odd files as working directory, in which nothing trains."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        make_files(Path(place), run)
        for owner, name in LONG:
            stack.enter_context(mock.patch.object(owner, name, begin))
        stack.enter_context(mock.patch.object(loading, "compile_grid", _compile_once))
        os.chdir(place)
        try:
            yield
        finally:
            os.chdir(before)


def make_files(place: Path, run: Path | None) -> None:
    """Writes the files that random command lines name."""
    run = run or runner.execute(tiny(), place / "runs", show=False)[0].path
    shutil.copytree(run, place / "run")
    shutil.rmtree(place / "runs", ignore_errors=True)
    agents.save_agent(loading.load(place / "run"), place / "agent.npz")
    (place / "folder").mkdir()
    (place / "empty").touch()
    (place / "binary").write_bytes(random.Random(0).randbytes(1000))
    (place / "text.txt").write_text("hello\n")


def attempt(line: list[str]) -> tuple[str, str]:
    """Runs a command line; returns how it ended, and a detail."""
    out, err, started = io.StringIO(), io.StringIO(), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main(line)
        end = ACCEPTED, ""
    except Reached:
        end = ACCEPTED, ""
    except Hang:
        end = "HANG", f"over {LIMIT:g} s"
    except SystemExit as error:
        end = exit_of(error.code, err.getvalue())
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = str(error).partition("\n")[0][:150]
        end = (
            "TRACEBACK",
            f"{type(error).__name__}: {text} ({Path(place.filename).name}:{place.lineno})",
        )
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if time.process_time() - started > LIMIT:
        return "HANG", f"{time.process_time() - started:.0f} s"
    return end


def exit_of(code, err: str) -> tuple[str, str]:
    """Classifies an exit by its code and by what was printed to stderr."""
    lines = err.strip().splitlines()
    if code in (0, None):
        return ACCEPTED, ""
    if code == 2 and len(lines) == 1 and lines[0].startswith("splagger: "):
        return (REFUSED, lines[0]) if len(lines[0]) < 2000 else ("LONG LINE", lines[0][:200])
    if code == 2 and lines and not any(line.startswith("splagger: ") for line in lines):
        return USAGE, ""
    return "UNCLEAR", f"exit code {code}, {len(lines)} lines: {' / '.join(lines)[:200]}"


def storm(tries: int, seed: int = 0, run: Path | None = None) -> Outcome:
    """Tries random command lines; those of `seed` + n are always the same. `run` is a finished run, if there is one."""
    counts, failures = collections.Counter(), []
    before = signal.signal(signal.SIGPROF, _time_is_over)
    try:
        with sandbox(run), warnings.catch_warnings():
            warnings.simplefilter("error")
            for number in range(seed, seed + tries):
                line = words.line(random.Random(number))
                faulthandler.dump_traceback_later(WATCHDOG, exit=True, file=sys.__stderr__)
                end, detail = attempt(line.words)
                faulthandler.cancel_dump_traceback_later()
                if end == ACCEPTED and line.nonsense:
                    end, detail = "NONSENSE ACCEPTED", line.nonsense
                counts[end] += 1
                if end not in (ACCEPTED, REFUSED, USAGE):
                    shown = shlex.join(word[:100] for word in line.words)
                    repeat = f"python -m tests.storm.commands --tries 1 --seed {number}"
                    failures.append(f"{end}: splagger {shown}: {detail} ({repeat})")
    finally:
        signal.signal(signal.SIGPROF, before)
    return Outcome("command lines", tries, failures, dict(counts))


def _time_is_over(*_):
    raise Hang


if __name__ == "__main__":
    print(storm(*parse_arguments(tries=3000)))
