"""What an agent earns at each step of a meta-episode: whether it does better as it gets to know its task."""

from jaxtyping import Array, Float, Key

from splagger.analysis.inputs import Inputs
from splagger.analysis.options import Options
from splagger.memory import SequenceModel


def earned_at(
    memory: SequenceModel, inputs: Inputs, key: Key[Array, ""], options: Options
) -> Float[Array, "T 1"]:
    """The reward of each step; its mean over tasks is what the analysis is about."""
    return inputs.reward[:, None]
