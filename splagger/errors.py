"""Errors that a user can fix. The command line prints them as one line; every other exception is a bug."""


class UserError(Exception):
    """Base of all errors that a user can fix. The message says what is wrong and how to fix it."""


class SettingError(UserError, ValueError):
    """An invalid argument, setting or name."""


class EnvError(UserError, ValueError):
    """An environment that breaks its protocol. The message names the environment, the field and the step."""


class RunError(UserError, RuntimeError):
    """A run folder, checkpoint, analysis or agent file that cannot be read or written."""


class Interrupted(Exception):
    """Raised after a signal stopped training and the state was saved."""
