"""The paper's numbers: training protocols and reference returns of each environment. Needs no JAX."""

from typing import NamedTuple

# The learning rates of the paper's sweeps, and the number of seeds per rate.
PAPER_RATES = (3e-3, 1e-3, 3e-4, 1e-4, 3e-5)
PAPER_SEEDS = 3


class Scale(NamedTuple):
    """Returns per meta-episode of a policy that guesses and of the best known policy."""

    guess: float
    best: float


class ReferenceLine(NamedTuple):
    """A return that figures show as a horizontal line, and the policy that earns it."""

    label: str
    value: float


class Protocol(NamedTuple):
    """The training protocol of an environment: episodes per task and frames per run.

    `scale` is None if the best return is unknown. `plateaus` are suboptimal policies at which learning may stop.
    `small` environments are not in the paper; they are for tests and demos.
    """

    episodes: int
    frames: int
    scale: Scale | None = None
    plateaus: tuple[ReferenceLine, ...] = ()
    small: bool = False

    @property
    def best_return(self) -> float | None:
        """The return of the best known policy, if known."""
        return self.scale.best if self.scale else None


_DOORS = Scale(2.0, 16.0)  # four doors that pay +4 or -3: guessed, and known
_PLANNING = Scale(1.76, 38.0)  # random actions; exploring once, then taking the shortest paths
_EXPLORES = 17.85  # exploring again after every goal: the best policy without observations

PROTOCOLS: dict[str, Protocol] = {
    "t-ls": Protocol(4, 1_500_000, _DOORS),
    "t-agreement": Protocol(4, 10_000_000, _DOORS),
    "t-latent": Protocol(4, 1_500_000, Scale(2.0, 15.85)),
    "planning": Protocol(
        1, 50_000_000, _PLANNING, (ReferenceLine("explores every time", _EXPLORES),)
    ),
    "planning-noobs": Protocol(1, 10_000_000, Scale(_PLANNING.guess, _EXPLORES)),
    # All rooms are correct; the last door is guessed, or known.
    "mc-ls": Protocol(2, 60_000_000, Scale(20.4, 27.4)),
    "cheetah-dir": Protocol(1, 75_000_000),
    "walker": Protocol(2, 75_000_000),
    "t-ls-demo": Protocol(4, 150_000, _DOORS, small=True),
    "t-ls-small": Protocol(4, 100_000, _DOORS, small=True),
    "t-agreement-small": Protocol(4, 200_000, _DOORS, small=True),
    "t-latent-small": Protocol(4, 200_000, small=True),
    "planning-small": Protocol(1, 200_000, small=True),
    "mc-ls-small": Protocol(2, 200_000, Scale(3.6, 10.6), small=True),
    "cheetah-dir-small": Protocol(1, 1_000_000, small=True),
    "walker-small": Protocol(2, 1_000_000, small=True),
}
PAPER: dict[str, Protocol] = {name: p for name, p in PROTOCOLS.items() if not p.small}
SCALES: dict[str, Scale] = {name: p.scale for name, p in PAPER.items() if p.scale}


def reference_lines(env: str) -> tuple[ReferenceLine, ...]:
    """Returns the best known return of an environment and its plateaus; nothing if that is unknown."""
    protocol = PROTOCOLS.get(env)
    if protocol is None or protocol.scale is None:
        return ()
    return (ReferenceLine("best known", protocol.scale.best), *protocol.plateaus)
