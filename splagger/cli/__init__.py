"""The command line. No numerics here: every command calls the library, and imports it only when it runs."""

import contextlib
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import tyro

from splagger.cli.looking import Analyse, Compare, Evaluate, Export, Figure, Plot, Report, Watch
from splagger.cli.training import Bench, List, Reproduce, Sweep, Train

Command = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Sweep, tyro.conf.subcommand("sweep")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Watch, tyro.conf.subcommand("watch")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[Figure, tyro.conf.subcommand("figure")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Analyse, tyro.conf.subcommand("analyse")]
    | Annotated[Analyse, tyro.conf.subcommand("analyze")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line. Bad input ends with one clear line and exit code 2."""
    command: Any = tyro.cli(
        Command,
        prog="splagger",
        description="Meta-reinforcement learning whose memory is a commutative monoid.",
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    with _clear_errors():
        command()
        sys.stdout.flush()


@contextlib.contextmanager
def _clear_errors():
    """What the user can mend is told in one line; everything else is a bug and shows its traceback."""
    from splagger.envs import EnvError
    from splagger.experiments.records import RunError
    from splagger.experiments.runner import Interrupted

    try:
        yield
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, RunError, OSError) as error:
        ours = isinstance(error, EnvError | RunError | OSError)
        if not ours and not _raised_here(error):
            raise
        print(f"splagger: {error}", file=sys.stderr)
        sys.exit(2)
    except Interrupted:
        print("\nsplagger: stopped and saved; the same command goes on from here", file=sys.stderr)
        sys.exit(130)
    except KeyboardInterrupt:
        print(
            "\nsplagger: stopped; the same command goes on from the last checkpoint",
            file=sys.stderr,
        )
        sys.stderr.flush()
        os._exit(130)  # what still computes is not waited for


def _raised_here(error: Exception) -> bool:
    """Whether this package raised it: then it is about what it was given, else it may be about anything."""
    frames = traceback.extract_tb(error.__traceback__)
    return Path(frames[-1].filename).is_relative_to(Path(__file__).parents[1])
