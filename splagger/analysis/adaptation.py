"""The reward of each step of a meta-episode, which shows whether an agent adapts to its task."""

from jaxtyping import Array, Float, Key

from splagger.analysis.inputs import Inputs
from splagger.analysis.options import Options
from splagger.memory import SequenceModel


def earned_at(
    memory: SequenceModel, inputs: Inputs, key: Key[Array, ""], options: Options
) -> Float[Array, "T 1"]:
    """Returns the reward of each step; the analysis averages it over tasks."""
    return inputs.reward[:, None]
