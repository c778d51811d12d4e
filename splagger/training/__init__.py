"""Executing runs: one compiled program per grid, progress, interruption and exact resume."""

from splagger.training.api import curves as curves
from splagger.training.api import train as train
from splagger.training.bench import measure as measure
from splagger.training.runner import execute as execute
