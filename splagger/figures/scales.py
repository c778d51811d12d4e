"""What returns mean: of a meta-episode, what guessing earns and what the best known policy does."""

from typing import NamedTuple


class Scale(NamedTuple):
    guess: float
    best: float


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
