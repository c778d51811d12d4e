"""The paper's analyses of memories, at initialization and of trained runs, and what a memory remembers."""

from splagger.analysis.api import analyze as analyze
from splagger.analysis.options import Options as Options
from splagger.analysis.records import read as read
from splagger.analysis.table import ANALYSES as ANALYSES
