"""`splagger` and `python -m splagger`: the command line, with one line for an interruption at any moment."""

import contextlib
import os
import signal
import sys


def run() -> None:
    """Runs the command line.

    Outside of training, which handles signals itself, Ctrl-C ends the process at once: an exception could be raised
    inside of another library's import or cleanup, which would print its traceback.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    # Otherwise JAX reserves three quarters of the GPU when it starts, and a second program finds too little.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        from splagger.files.storage import print_any_text

        print_any_text()
        from splagger.cli import main

        main()
    except SystemExit as error:
        if error.code == 130:
            _leave()
        raise


def _stop(number, frame) -> None:
    os.write(2, b"\nsplagger: stopped\n")
    _leave()


def _leave() -> None:
    """Ends the process without waiting for running computations."""
    with contextlib.suppress(Exception):  # the signal may have come in the middle of a print
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    run()
