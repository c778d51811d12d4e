"""The command line. Every command calls the library, and imports it only when it runs."""

import contextlib
import errno
import os
import sys
import traceback
import typing
from importlib.metadata import version
from typing import Annotated, Any

import tyro

from splagger.cli.agent_commands import Analyse, Export, Watch
from splagger.cli.evaluate_command import Evaluate
from splagger.cli.formatting import in_one_line
from splagger.cli.leaderboard_command import Leaderboard
from splagger.cli.list_commands import List, Settings, Zoo
from splagger.cli.options import check_option_names, check_no_more, check_options
from splagger.cli.inspect_command import Inspect
from splagger.cli.report_commands import Compare, Figure, Plot, Report, Reproduce
from splagger.cli.status_command import Status
from splagger.cli.train_commands import Bench, Sweep, Train
from splagger.errors import Interrupted, UserError
from splagger.tables import lookup

Command = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Settings, tyro.conf.subcommand("settings")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Sweep, tyro.conf.subcommand("sweep")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Status, tyro.conf.subcommand("status")]
    | Annotated[Zoo, tyro.conf.subcommand("zoo")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Watch, tyro.conf.subcommand("watch")]
    | Annotated[Inspect, tyro.conf.subcommand("inspect")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[Leaderboard, tyro.conf.subcommand("leaderboard")]
    | Annotated[Figure, tyro.conf.subcommand("figure")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Analyse, tyro.conf.subcommand("analyse")]
    | Annotated[Analyse, tyro.conf.subcommand("analyze")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


COMMANDS = {
    note.name: kind
    for kind, note in (typing.get_args(command) for command in typing.get_args(Command))
}


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line. Errors that a user can fix print one line and exit with code 2."""
    words = sys.argv[1:] if arguments is None else arguments
    with _exit_codes():
        if words == ["--version"]:
            print(f"splagger {version('splagger')}")
            return
        if words and not words[0].startswith("-"):
            check_option_names(words, lookup(COMMANDS, words[0], "command"))
        command: Any
        command, unknown = tyro.cli(
            Command,
            prog="splagger",
            description="Meta-reinforcement learning whose memory is a commutative monoid.",
            args=words,
            return_unknown_args=True,
            config=(
                tyro.conf.OmitArgPrefixes,
                tyro.conf.FlagCreatePairsOff,
                tyro.conf.DisallowNone,
            ),
        )
        check_no_more(words, unknown)
        check_options(command, words)
        command()
        sys.stdout.flush()


@contextlib.contextmanager
def _exit_codes():
    """Prints a `UserError` as one line. Any other exception is a bug and shows its traceback."""
    try:
        yield
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # What was printed and not written would fail again at the end.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"splagger: cannot write ({error.strerror})", file=sys.stderr)
        sys.exit(2)
    except UserError as error:
        print(f"splagger: {in_one_line(str(error))}", file=sys.stderr)
        if _is_one_of_several():
            _exit_at_once(2)
        sys.exit(2)
    except Interrupted as error:
        print(f"\nsplagger: {error}", file=sys.stderr)
        if error.abandoned:
            _exit_at_once(130)
        sys.exit(130)
    except KeyboardInterrupt:
        text = "stopped; the same command continues from the last checkpoint, if there is one"
        print(f"\nsplagger: {text}", file=sys.stderr)
        _exit_at_once(130)
    except Exception:
        if not _is_one_of_several():
            raise
        traceback.print_exc()
        _exit_at_once(1)


def _is_one_of_several() -> bool:
    """Whether other processes train the same experiment. JAX would wait for them at the end of this one, and they for it."""
    return "jax" in sys.modules and sys.modules["jax"].distributed.is_initialized()


def _exit_at_once(code: int) -> None:
    """Ends the process without waiting for running computations and other processes."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
