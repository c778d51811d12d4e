"""Permutation-invariant aggregators as commutative monoids. They depend on JAX and Equinox only."""

from splagger.aggregators.checking import check_aggregator as check_aggregator
from splagger.aggregators.checking import check_parameters as check_parameters
from splagger.aggregators.combinators import Halves as Halves
from splagger.aggregators.combinators import StraightThrough as StraightThrough
from splagger.aggregators.elementwise import Max as Max
from splagger.aggregators.elementwise import Mean as Mean
from splagger.aggregators.elementwise import Sum as Sum
from splagger.aggregators.monoid import AbstractAggregator as AbstractAggregator
from splagger.aggregators.monoid import absorb as absorb
from splagger.aggregators.monoid import prefixes as prefixes
from splagger.aggregators.monoid import read_size as read_size
from splagger.aggregators.weighted import GaussianProduct as GaussianProduct
from splagger.aggregators.weighted import Softmax as Softmax
from splagger.aggregators.weighted import WeightedMean as WeightedMean
from splagger.aggregators.weighted import WeightedSoftmax as WeightedSoftmax
from splagger.aggregators.weighted import at_least as at_least
from splagger.aggregators.weighted import temperatures as temperatures
