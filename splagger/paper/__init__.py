"""The paper as data: its figures, its claims with their tests, and the runs that are missing."""

from splagger.paper.claims import CLAIMS as CLAIMS
from splagger.paper.claims import Claim as Claim
from splagger.paper.claims import evaluate_claims as evaluate_claims
from splagger.paper.figures import FIGURES as FIGURES
from splagger.paper.figures import select as select
from splagger.paper.verdicts import FAILS as FAILS
from splagger.paper.verdicts import HOLDS as HOLDS
from splagger.paper.verdicts import UNDECIDED as UNDECIDED
from splagger.paper.verdicts import Verdict as Verdict
