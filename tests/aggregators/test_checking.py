"""An aggregator that breaks a law is rejected before training, by an error that names the law."""

import jax.numpy as jnp
import pytest

from splagger import Method, aggregators
from splagger.aggregators import Halves, Max, Sum, check_aggregator
from splagger.runs.run import Run

VALID = [
    Max(),
    Sum(),
    aggregators.Mean(),
    aggregators.Softmax(0.1),
    aggregators.WeightedSoftmax(0.1),
]
VALID += [
    aggregators.WeightedMean(),
    aggregators.GaussianProduct(),
    Halves(aggregators.Mean(), Max()),
]
VALID += [aggregators.StraightThrough(Max())]


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


class Typo(Sum):
    def combine(self, a, b):
        return a + self.scal * b


class Shapes(Sum):
    def empty(self, e):
        return jnp.zeros(3)


@pytest.mark.parametrize("aggregator", VALID, ids=str)
def test_valid_aggregators_pass(aggregator):
    check_aggregator(aggregator)


PROBLEMS = {
    Fading: "Fading: combine is not associative",
    Average: "Average: combine is not associative",
    Ones: "Ones: empty is not a unit of combine",
    Typo: r"Typo cannot be used \(AttributeError: 'Typo' object has no attribute 'scal'",
    Shapes: r"Shapes cannot be used \(TypeError: .*shapes|Shapes: .*shapes",
    Number: r"Number: read must return a vector, got shape \(\)",
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_invalid_aggregators_are_rejected_before_training(kind):
    with pytest.raises(ValueError, match=PROBLEMS[kind]):
        check_aggregator(kind())
    with pytest.raises(ValueError, match=PROBLEMS[kind]):
        Run.create("t-ls-small", Method("custom", aggregator=kind()))


def test_parts_of_a_combinator_are_checked():
    with pytest.raises(ValueError, match="Halves: combine is not associative"):
        Run.create("t-ls-small", Method("custom", aggregator=Halves(Fading(), Max())))


def test_an_aggregator_that_is_not_used_is_not_checked():
    run = Run.create("t-ls-small", Method("custom", aggregator=Fading(), skip=1.0))
    assert run.method.skip == 1.0
