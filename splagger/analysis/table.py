"""The analyses there are: rows of data. A new one is a function of a memory and its inputs, and one more row."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Array

from splagger.analysis.adaptation import earned_at
from splagger.analysis.gradients import gradient_first, gradient_inputs, gradient_parameters
from splagger.analysis.latents import belief_variance, holds_a_belief
from splagger.analysis.permutation import permutation_difference
from splagger.analysis.remember import NOTHING_YET, holds_maxima, memory_events
from splagger.memory import SequenceModel

COMPARED = ("rnn", "amrl", "splagger", "splagger-nornn")  # of the paper's figure


@dataclass(frozen=True)
class Analysis:
    """`measure(memory, inputs, key, options)` → [steps, dimensions], for one memory and one sequence."""

    name: str
    summary: str
    measure: Callable[..., Array]
    methods: tuple[str, ...] = COMPARED  # that are looked at before training, if none are named
    seeds: int = 3  # likewise
    sequences: int = 1  # of inputs, whose results are averaged
    real: bool = False  # needs a whole meta-episode that the agent lived through
    first_step: int = 0
    afterwards: float = math.nan  # the value of steps after the task's end
    suits: Callable[[SequenceModel], bool] = lambda memory: True
    needs: str = ""  # of a memory, in words


ROWS = (
    Analysis(
        "gradient-first",
        "gradient of each output with respect to the first transition",
        gradient_first,
    ),
    Analysis(
        "gradient-parameters",
        "gradient of each output with respect to the parameters",
        gradient_parameters,
    ),
    Analysis(
        "gradient-inputs",
        "gradient of the last output with respect to each transition",
        gradient_inputs,
    ),
    Analysis(
        "permutation",
        "distance of the outputs for two orders of the same transitions",
        permutation_difference,
        sequences=5,
    ),
    Analysis(
        "pearl-variance",
        "variance of the belief over a meta-episode",
        belief_variance,
        methods=("pearl",),
        real=True,
        suits=holds_a_belief,
        needs="a belief (mean and variance), as pearl has",
    ),
    Analysis(
        "memory",
        "the step of the meta-episode that set each neuron's maximum",
        memory_events,
        methods=("splagger",),
        real=True,
        first_step=NOTHING_YET,
        suits=holds_maxima,
        needs="neurons aggregated by maximum, as splagger has",
    ),
    Analysis(
        "adaptation",
        "reward of each step of a meta-episode, on average over tasks",
        earned_at,
        methods=("splagger", "rnn"),
        sequences=200,
        real=True,
        afterwards=0.0,
    ),
)

ANALYSES: dict[str, Analysis] = {row.name: row for row in ROWS}
