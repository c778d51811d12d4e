"""What may be varied about an analysis."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields

import jax.numpy as jnp
from jaxtyping import Array

from splagger.errors import SettingError


@dataclass(frozen=True)
class Options:
    """The defaults are the paper's. Frozen and hashable, so that it can be static in a compiled program.

    >>> Options(length=50, jacobian=True, methods=("rnn",)).command()
    '--length 50 --jacobian --methods rnn'
    """

    length: int = 100
    """Steps of a sequence of noise, or of the transitions in its place."""
    independent: bool = False
    """Noise of its own for every dimension of the input; the paper replicates one number."""
    jacobian: bool = False
    """Size of the whole Jacobian instead of the summed output's gradient."""
    real: bool = False
    """Transitions of a meta-episode instead of noise."""
    task_seed: int = 0
    """Which task the meta-episode is of, or the first of several."""
    every_seed: bool = False
    """Of a run: all seeds of the best agent's rate, not that agent alone."""
    env: str = "t-ls"
    """Before training: the environment that gives sizes and meta-episodes."""
    methods: tuple[str, ...] = ()
    """Before training: which methods; each analysis has its own if none are given."""
    seeds: int | None = None
    """Before training: how many initializations of each method."""

    def check(self) -> None:
        """Raises a ValueError that names what cannot be."""
        for name in ("length", "seeds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingError(f"{name} must be at least 1, got {value}")
        if not 0 <= self.task_seed < 2**31:
            raise SettingError(f"task_seed must lie in 0 … 2³¹ - 1, got {self.task_seed}")

    @property
    def rows(self) -> Callable[[int], Array]:
        """For n outputs: the combinations of them that are differentiated, one a row."""
        return jnp.eye if self.jacobian else lambda n: jnp.ones((1, n))

    def command(self) -> str:
        """As the command line takes them; defaults are left out."""
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                given = value if isinstance(value, tuple) else () if value is True else (value,)
                words += [f"--{field.name.replace('_', '-')}", *map(str, given)]
        return shlex.join(words)
