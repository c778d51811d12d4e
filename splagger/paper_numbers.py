"""Numbers of the paper and of other tasks: training protocols and reference returns of each environment. Needs no JAX."""

from typing import NamedTuple

# The learning rates of the paper's sweeps, and the number of seeds per rate.
PAPER_RATES = (3e-3, 1e-3, 3e-4, 1e-4, 3e-5)
PAPER_SEEDS = 3


class Scale(NamedTuple):
    """Returns per meta-episode of a policy that guesses and of the best known policy.

    When returns are normalized, they count as 0 and 1.
    """

    guess: float
    best: float


class ReferenceLine(NamedTuple):
    """A return that figures show as a horizontal line, and the policy that earns it."""

    label: str
    value: float


class Protocol(NamedTuple):
    """The training protocol of an environment: episodes per task and frames per run.

    `scale` is None if the best return is unknown. `plateaus` are suboptimal policies at which learning may stop.
    `small` environments are not in the paper; they are for tests and demos. `classic` ones are not in the paper
    either; they are tasks of the literature.
    """

    episodes: int
    frames: int
    scale: Scale | None = None
    plateaus: tuple[ReferenceLine, ...] = ()
    small: bool = False
    classic: bool = False

    @property
    def best_return(self) -> float | None:
        """The return of the best known policy, if known."""
        return self.scale.best if self.scale else None


_DOORS = Scale(2.0, 16.0)  # four doors that pay +4 or -3: guessed, and known
_PLANNING = Scale(1.76, 38.0)  # random actions; exploring once, then taking the shortest paths
_EXPLORES = 17.85  # exploring again after every goal: the best policy without observations

# Tasks of the literature. `python -m benchmarks.references` estimates the returns of a random policy and of
# scripted policies, the first of which is the reference.
_BANDIT_5 = Scale(50.0, 78.9)
_THOMPSON_5 = ReferenceLine("Thompson sampling", 75.4)
_BANDIT_50 = Scale(50.0, 85.5)
_THOMPSON_50 = ReferenceLine("Thompson sampling", 64.6)
_TABULAR = Scale(100.0, 164.2)  # planning with posterior means and a bonus for uncertainty
_GOAL_GRID = Scale(-4.68, 37.21)  # Bayes-optimal, see `benchmarks.scripted.searching`
_DARK_ROOM = Scale(1.99, 99.8)  # nearest cells first, then shortest paths
_KEY_TO_DOOR = Scale(2.32, 9.16)  # the same
_POINT_ROBOT = Scale(0.28, 53.6)  # walking along the half circle, then straight to the goal
# Eight laps that pay +4 or -3: guessed, and known. A policy that keeps the first signal is right with probability
# 1/2 + 2^-(j+1) in lap j = 0 … 7.
_ENDLESS = Scale(4.0, 32.0)
_KEEPS_FIRST = ReferenceLine("first signal", 4 + 7 * (1 - 2**-8))

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
    "bandit-5": Protocol(1, 1_000_000, _BANDIT_5, (_THOMPSON_5,), classic=True),
    "bandit-50": Protocol(1, 2_000_000, _BANDIT_50, (_THOMPSON_50,), classic=True),
    "tabular-mdp": Protocol(10, 2_000_000, _TABULAR, classic=True),
    "goal-grid": Protocol(4, 2_000_000, _GOAL_GRID, classic=True),
    "dark-room": Protocol(8, 2_000_000, _DARK_ROOM, classic=True),
    "key-to-door": Protocol(5, 2_000_000, _KEY_TO_DOOR, classic=True),
    "point-robot": Protocol(4, 2_000_000, _POINT_ROBOT, classic=True),
    "t-endless": Protocol(1, 2_000_000, _ENDLESS, (_KEEPS_FIRST,), classic=True),
}
PAPER: dict[str, Protocol] = {
    name: p for name, p in PROTOCOLS.items() if not p.small and not p.classic
}
SCALES: dict[str, Scale] = {name: p.scale for name, p in PAPER.items() if p.scale}


def reference_lines(env: str) -> tuple[ReferenceLine, ...]:
    """Returns the best known return of an environment and its plateaus; nothing if that is unknown."""
    protocol = PROTOCOLS.get(env)
    if protocol is None or protocol.scale is None:
        return ()
    return (ReferenceLine("best known", protocol.scale.best), *protocol.plateaus)
