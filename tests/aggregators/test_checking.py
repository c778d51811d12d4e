"""Aggregators that break a law are told which, before they are trained."""

import jax.numpy as jnp
import pytest

from splagger import Method
from splagger import aggregators as ours
from splagger.aggregators import Halves, Max, Sum, check_aggregator
from splagger.runs.run import Run

OURS = [Max(), Sum(), ours.Mean(), ours.Softmax(0.1), ours.WeightedSoftmax(0.1)]
OURS += [ours.WeightedMean(), ours.GaussianProduct(), Halves(ours.Mean(), Max())]
OURS += [ours.StraightThrough(Max())]


class Fading(Sum):
    def combine(self, a, b):
        return 0.9 * a + b


class Average(Sum):
    def combine(self, a, b):
        return (a + b) / 2


class Ones(Sum):
    def empty(self, e):
        return jnp.ones_like(e)


class Number(Sum):
    def read(self, aggregate):
        return aggregate.sum()


@pytest.mark.parametrize("aggregator", OURS, ids=str)
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
    run = Run.create("t-ls-small", Method("mine", aggregator=Fading(), skip=1.0))
    assert run.method.skip == 1.0
