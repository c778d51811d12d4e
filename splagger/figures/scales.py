"""What returns mean, and how the paper's environments are trained. No jax here, so that figures need none."""

from typing import NamedTuple


class Scale(NamedTuple):
    """Of a meta-episode: what guessing earns, and what the best known policy does."""

    guess: float
    best: float


class Mark(NamedTuple):
    """A return that a picture shows beside the curves, and what earns it."""

    label: str
    value: float


class Usual(NamedTuple):
    """Episodes of a task and frames of a run: with others it is another experiment, or a trial."""

    episodes: int
    frames: int


# T-Mazes: four doors at +4 or -3, guessed or known. Planning: random actions; exploring once, then going
# straight (38.0), or, without observations, exploring anew after each goal (17.85). MC-LS: every room right,
# and the last door guessed or known.
SCALES = {
    "t-ls": Scale(2.0, 16.0),
    "t-agreement": Scale(2.0, 16.0),
    "t-latent": Scale(2.0, 15.85),
    "planning": Scale(1.76, 38.0),
    "planning-noobs": Scale(1.76, 17.85),
    "mc-ls": Scale(20.4, 27.4),
}

# Policies that learning may stop at on its way to the best.
STOPS = {
    "planning": (Mark("explores every time", SCALES["planning-noobs"].best),),
}


def marks(env: str, best: float | None) -> tuple[Mark, ...]:
    """The best known return of the environment, where one is, and others that mean something."""
    return (() if best is None else (Mark("best known", best),)) + STOPS.get(env, ())


USUAL = {
    "t-ls": Usual(4, 1_500_000),
    "t-agreement": Usual(4, 10_000_000),
    "t-latent": Usual(4, 1_500_000),
    "planning": Usual(1, 50_000_000),
    "planning-noobs": Usual(1, 10_000_000),
    "mc-ls": Usual(2, 60_000_000),
    "cheetah-dir": Usual(1, 75_000_000),
    "walker": Usual(2, 75_000_000),
}
