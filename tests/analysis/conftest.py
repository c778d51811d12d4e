"""Tests here may use the small trained run."""

from tests.experiments.tiny import compiled_once, trained  # noqa: F401
