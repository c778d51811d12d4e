"""Every test here may use the small experiment."""

from tests.experiments.tiny import compiled_once, trained  # noqa: F401
