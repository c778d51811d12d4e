"""Errors that a user can fix. The command line prints them as one line; every other exception is a bug."""

import importlib
import traceback
from pathlib import Path

# Files that are never the cause of an error in somebody else's code.
_MACHINERY = ("<frozen", importlib.__file__, str(Path(__file__).parent))


class UserError(Exception):
    """Base of all errors that a user can fix. The message says what is wrong and how to fix it."""


class SettingError(UserError, ValueError):
    """An invalid argument, setting or name."""


class EnvError(UserError, ValueError):
    """An environment that breaks its protocol. The message names the environment, the field and the step."""


class RunError(UserError, RuntimeError):
    """A run folder, checkpoint, analysis or agent file that cannot be read or written."""


class DivergedError(RunError):
    """A run that failed because every member diverged."""


class Interrupted(Exception):
    """Raised after a signal stopped training. The message says what was saved.

    `abandoned`: whether a computation still runs in a thread; the process should end without waiting for it.
    """

    def __init__(self, message: str = "stopped", abandoned: bool = False):
        super().__init__(message)
        self.abandoned = abandoned


# Everything that somebody else's code may raise. `sys.exit()` in it must not end the program without a message.
FOREIGN_ERRORS = (Exception, SystemExit)


def one_line(error: BaseException) -> str:
    """Returns the first line of an error's message, without control characters and not longer than 300 characters.

    >>> one_line(ValueError("a\\x1b[31m file\\nof a stranger"))
    'a?[31m file'
    """
    line = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    text = "".join(char if char.isprintable() else "?" for char in line)
    return text if len(text) <= 300 else f"{text[:300]}…"


def kind_of(value: object) -> str:
    """Returns what a value is, for messages about values of a wrong type.

    >>> kind_of(3.5), kind_of(int)
    ('float', 'the class int')
    """
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def cause_of(error: BaseException) -> str:
    """Returns an error of somebody else's code in one line: its type, its message, and where it was raised.

    >>> cause_of(ValueError("too small\\nby one"))
    'ValueError: too small'
    """
    name, message = type(error).__name__, one_line(error)
    text = name if message == name else f"{name}: {message}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_MACHINERY)]
    if not own or isinstance(error, SyntaxError):  # whose message names the place
        return text
    return f"{text} ({own[-1].filename}:{own[-1].lineno})"
