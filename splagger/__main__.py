"""`splagger` and `python -m splagger`: the command line, with one line for an interruption at any moment."""

import os
import signal
import sys


def run() -> None:
    """Runs the command line. Interruptions during imports and during the interpreter's own end are handled, too."""
    try:
        from splagger.cli import main

        main()
    except KeyboardInterrupt:
        print("\nsplagger: stopped", file=sys.stderr)
        _leave(130)
    except SystemExit as error:
        if error.code == 130:
            _leave(130)
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(code: int) -> None:
    """Ends the process without waiting for running computations."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
