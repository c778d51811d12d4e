"""Statistics of recorded runs: evidence, selection of rates, estimates with intervals, comparisons. Needs no JAX."""

from splagger.stats.comparison import compare as compare
from splagger.stats.estimates import Estimate as Estimate
from splagger.stats.evidence import Evidence as Evidence
from splagger.stats.evidence import Series as Series
from splagger.stats.members import Members as Members
from splagger.stats.members import best_rate as best_rate
from splagger.stats.returns import returns as returns
from splagger.stats.selection import Chosen as Chosen
from splagger.stats.summary import summarize as summarize
from splagger.stats.variants import Variant as Variant
from splagger.stats.variants import variants as variants
