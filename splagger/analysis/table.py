"""The analyses as rows of data. To add one, write a function of a memory and its inputs, and add a row."""

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

COMPARED = ("rnn", "amrl", "splagger", "splagger-nornn")  # as in the paper's figure


@dataclass(frozen=True)
class Analysis:
    """An analysis; `measure(memory, inputs, key, options)` → [steps, dimensions] takes one memory and one sequence."""

    name: str
    summary: str
    measure: Callable[..., Array]
    methods: tuple[str, ...] = COMPARED  # the default methods of untrained agents
    seeds: int = 3  # the default number of untrained agents per method
    sequences: int = 1  # number of input sequences; their values are averaged
    real: bool = False  # whether the inputs are always a whole meta-episode
    first_step: int = 0
    afterwards: float = math.nan  # the value of steps after the task's end
    suits: Callable[[SequenceModel], bool] = lambda memory: True
    needs: str = ""  # what a suitable memory has, for error messages


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
        "distance between the outputs for two orders of the same transitions",
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
        "reward of each step of a meta-episode, averaged over tasks",
        earned_at,
        methods=("splagger", "rnn"),
        sequences=200,
        real=True,
        afterwards=0.0,
    ),
)

ANALYSES: dict[str, Analysis] = {row.name: row for row in ROWS}
