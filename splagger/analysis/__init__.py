"""Analyses of memories: gradients, permutations, beliefs, contents, and adaptation within a task."""

from splagger.analysis.api import analyze as analyze
from splagger.analysis.options import Options as Options
from splagger.analysis.table import ANALYSES as ANALYSES
