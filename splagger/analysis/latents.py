"""The uncertainty of memories that hold a belief about the task."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from splagger.aggregators import GaussianProduct
from splagger.analysis.gradients import outputs_of
from splagger.analysis.inputs import Inputs
from splagger.analysis.options import Options
from splagger.memory import SequenceModel
from splagger.nn import Linear


def belief_variance(
    memory: SequenceModel, inputs: Inputs, key: Key[Array, ""], options: Options
) -> Float[Array, "T z"]:
    """Returns the variance of every dimension of the belief after each transition."""
    _, log_variances = jnp.split(outputs_of(memory, inputs.xs), 2, axis=1)
    return jnp.exp(log_variances)


def holds_a_belief(memory: SequenceModel) -> bool:
    """Returns whether the memory's output is (mean, log variance), as PEARL's is: the whole aggregate, not projected."""
    aggregation, projected = memory.aggregation, isinstance(memory.projection, Linear)
    product = isinstance(aggregation.aggregator, GaussianProduct)
    return product and aggregation.skip == 0 and not projected
