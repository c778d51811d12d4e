"""Options of an analysis."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from splagger.ranges import FramesSoFar, Moderate, TaskSeed, check_fields

OUT = "runs/analysis"  # the folder of analyses


@dataclass(frozen=True)
class Options:
    """Options of an analysis; the defaults are the paper's. Hashable, hence a static argument of compiled programs.

    >>> Options(length=50, jacobian=True, methods=("rnn",)).command()
    '--length 50 --jacobian --methods rnn'
    """

    length: Moderate = 100
    """Number of steps of each input sequence."""
    independent: bool = False
    """Draw independent noise for every input dimension; the paper repeats one number."""
    jacobian: bool = False
    """Measure the whole Jacobian instead of the summed output's gradient."""
    real: bool = False
    """Use the transitions of a meta-episode instead of noise."""
    task_seed: TaskSeed = 0
    """Seed of the meta-episode's task, or of the first of several tasks."""
    every_seed: bool = False
    """Trained agents: analyze all seeds of the best agent's rate, not only that agent."""
    at: FramesSoFar | None = None
    """Trained agents: take the snapshots nearest to this number of frames (see `train --snapshot-every`)."""
    set: tuple[str, ...] = ()
    """Trained agents: other settings of their environment than in training, as env.NAME=VALUE."""
    env: str = "t-ls"
    """Untrained agents: the environment that determines sizes and meta-episodes."""
    methods: tuple[str, ...] = ()
    """Untrained agents: the methods to analyze; the analysis has its own defaults."""
    seeds: Moderate | None = None
    """Untrained agents: number of initializations per method; the analysis has its own default."""

    def check(self) -> None:
        """Raises a SettingError if a value is out of range."""
        check_fields(self, "")

    @property
    def rows(self) -> Callable[[int], Any]:
        """Maps n, the number of outputs, to a matrix whose rows are the output combinations to differentiate."""
        import jax.numpy as jnp

        return jnp.eye if self.jacobian else lambda n: jnp.ones((1, n))

    def command(self) -> str:
        """Returns the command-line flags; defaults are left out."""
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                given = value if isinstance(value, tuple) else () if value is True else (value,)
                words += [f"--{field.name.replace('_', '-')}", *map(str, given)]
        return shlex.join(words)
