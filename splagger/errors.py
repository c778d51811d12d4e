"""Errors that a user can fix. The command line prints them as one line; every other exception is a bug."""


class UserError(Exception):
    """Something a user can fix. The message names what is wrong and how to fix it."""


class SettingError(UserError, ValueError):
    """An argument, a setting or a name that cannot be used."""


class EnvError(UserError, ValueError):
    """An environment that breaks its protocol. The message names the environment, the field and the step."""


class RunError(UserError, RuntimeError):
    """A run folder, checkpoint, analysis or agent file that cannot be read or written."""


class Interrupted(Exception):
    """Training was asked to stop by a signal, and has saved its state."""
