"""An aggregator that breaks a law is rejected before training, by an error that names the law."""

import functools as ft
import math

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import pytest

from splagger import Method, SequenceModel, aggregators
from splagger.aggregators import Halves, Max, Sum, check_aggregator, temperatures
from splagger.errors import SettingError
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


class Counted(Sum):
    def empty(self, e):
        return jnp.zeros_like(e, dtype=int)


class Log(Sum):
    def read(self, aggregate):
        return jnp.log(aggregate)


class Sharp(Sum):
    temperature: float = eqx.field(static=True, default=0.5)


class Named(Sum):
    temperature: str = eqx.field(static=True, default="hot")


class Several(Sum):
    temperature: tuple[float, ...] = (0.5, 0.7)


@pytest.mark.parametrize("kind", [Sharp, Named, Several])
def test_only_a_trained_number_is_a_temperature(kind):
    assert temperatures(kind()) == []
    method = Method("custom", aggregator=kind())
    Run.create("t-ls-small", method)
    with pytest.raises(SettingError, match="does not use temperatures"):
        Run.create("t-ls-small", method, temperatures=[0.1, 0.2])


@pytest.mark.parametrize("aggregator", VALID, ids=str)
def test_valid_aggregators_pass(aggregator):
    check_aggregator(aggregator)


PROBLEMS = {
    Fading: "Fading: combine is not associative",
    Average: "Average: combine is not associative",
    Ones: "Ones: empty is not a unit of combine",
    Typo: r"Typo cannot be used \(AttributeError: 'Typo' object has no attribute 'scal'",
    Shapes: r"Shapes cannot be used \(TypeError: .*shapes|Shapes: .*shapes",
    Counted: r"Counted: empty and lift must return .*, got int32\[8\] and float32\[8\]",
    Log: "Log: read must return finite numbers",
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


class Power(Sum):
    power: int = 2


class Switch(Sum):
    on: bool = True


class Mode(Sum):
    mode: str = "mean"


class Scaled(Sum):
    scale: float = 2.0


class Table(Sum):
    table: tuple = (1.0, 2)


class Fixed(Sum):
    power: int = eqx.field(static=True, default=2)


UNTRAINED = {
    Power: r"Power: power holds int 2, and only floats are trained: .*static=True",
    Switch: "Switch: on holds bool True",
    Mode: "Mode: mode holds str 'mean'",
    Table: "Table: table holds int 2",
    ft.partial(Scaled, math.nan): "Scaled: scale must be finite, got nan",
    ft.partial(Scaled, math.inf): "Scaled: scale must be finite, got inf",
    ft.partial(Halves, Power(), Max()): "Power: power holds int 2",
}


@pytest.mark.parametrize("make", UNTRAINED)
def test_fields_that_cannot_be_trained_are_refused(make):
    for use in (
        check_aggregator,
        lambda aggregator: Run.create("t-ls-small", Method("custom", aggregator=aggregator)),
        lambda aggregator: SequenceModel.create(jr.key(0), 3, width=4, aggregator=aggregator),
    ):
        with pytest.raises(SettingError, match=UNTRAINED[make]):
            use(make())


@pytest.mark.parametrize("aggregator", [Fixed(), Scaled(2), Scaled(jnp.ones(()))], ids=str)
def test_static_fields_and_floats_are_accepted(aggregator):
    check_aggregator(aggregator)
    SequenceModel.create(jr.key(0), 3, width=4, aggregator=aggregator)
