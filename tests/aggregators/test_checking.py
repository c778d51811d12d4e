"""Aggregators that break a law are told which, before they are trained."""

import jax.numpy as jnp
import pytest

from splagger.aggregators import (
    AbstractAggregator,
    GaussianProduct,
    Halves,
    Max,
    Mean,
    Softmax,
    StraightThrough,
    Sum,
    WeightedMean,
    WeightedSoftmax,
    check_aggregator,
)
from splagger.experiments.grid import Run
from splagger.methods import Method

OURS = [Max(), Sum(), Mean(), Softmax(0.1), WeightedSoftmax(0.1), WeightedMean(), GaussianProduct()]
OURS += [Halves(Mean(), Max()), StraightThrough(Max())]


class Right(AbstractAggregator):
    def empty(self, e):
        return jnp.zeros_like(e)

    def lift(self, e):
        return e

    def combine(self, a, b):
        return a + b

    def read(self, aggregate):
        return aggregate


class Fading(Right):
    def combine(self, a, b):
        return 0.9 * a + b


class Average(Right):
    def combine(self, a, b):
        return (a + b) / 2


class Ones(Right):
    def empty(self, e):
        return jnp.ones_like(e)


class Number(Right):
    def read(self, aggregate):
        return aggregate.sum()


@pytest.mark.parametrize("aggregator", [*OURS, Right()], ids=str)
def test_right_ones_pass(aggregator):
    check_aggregator(aggregator)


PROBLEMS = {
    Fading: "Fading: combine is not associative",
    Average: "Average: combine is not associative",
    Ones: "Ones: empty is no unit of combine",
    Number: r"Number: read must give a vector, not \(\)",
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_wrong_ones_are_told_before_training(kind):
    with pytest.raises(ValueError, match=PROBLEMS[kind]):
        check_aggregator(kind())
    with pytest.raises(ValueError, match=PROBLEMS[kind]):
        Run.create("t-ls-small", Method("mine", aggregator=kind()))


def test_parts_of_ours_are_asked_too():
    with pytest.raises(ValueError, match="Halves: combine is not associative"):
        Run.create("t-ls-small", Method("mine", aggregator=Halves(Fading(), Max())))


def test_a_memory_that_does_not_aggregate_is_not_asked():
    Run.create("t-ls-small", Method("mine", aggregator=Fading(), skip=1.0))
