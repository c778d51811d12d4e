"""A page that shows what trained agents see, do and remember, step by step, and what their memory is worth."""

from splagger.inspection.api import inspect as inspect
from splagger.inspection.counterfactuals import Effect as Effect
from splagger.inspection.counterfactuals import Outcome as Outcome
from splagger.inspection.counterfactuals import counterfactuals as counterfactuals
from splagger.inspection.counterfactuals import effects as effects
from splagger.inspection.trace import Change as Change
from splagger.inspection.trace import Trace as Trace
from splagger.inspection.trace import trace as trace
