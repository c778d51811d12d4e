"""Tests of claims about analyses: which values decay, grow or stay flat along a sequence, and in which order.

A trend is the number of decades from the mean over the first third of the steps to the mean over the last third.
Thirds are long enough that single steps do not matter. They are far enough apart that values that grow like t rise by
0.7 decades, and values that fall like 1/t fall by 1.0. The threshold for a trend is half a decade (a factor of about
3), the smallest slope that is visible on the paper's logarithmic axis.
"""

from dataclasses import dataclass

import numpy as np

from splagger.paper.verdicts import SEEDS, UNDECIDED, Finding, Region, Verdict, conclude, decide
from splagger.plots.styles import style_of
from splagger.runs.analyses import AnalysisKey
from splagger.stats.estimates import LAST, Estimate, difference, estimate
from splagger.stats.evidence import AnalysisValues, Evidence

EDGE = 0.5  # decades
TINY = 1e-12  # the smallest value as a fraction of the largest: zero has no logarithm


def _samples(analysis: AnalysisValues) -> np.ndarray:
    """Returns positive samples [seeds, T]; the dimensions of one agent are not independent, hence averaged."""
    rows = analysis.values.mean(axis=1)
    return np.maximum(rows, TINY * max(float(np.nanmax(rows)), TINY))


@dataclass(frozen=True)
class Shape:
    """Tests whether the trend of each method's values along the steps lies in a region."""

    analysis: AnalysisKey
    methods: tuple[str, ...]

    unit = "decades from the first third to the last"
    region = Region()
    verb = ""

    def evaluate(self, evidence: Evidence) -> Verdict:
        return conclude([self._finding(evidence, method) for method in self.methods])

    def _finding(self, evidence: Evidence, method: str) -> Finding:
        name, analysis = style_of(method).label, evidence.analysis(self.analysis, method)
        if analysis is None:
            note = f"no analysis {self.analysis.name} of {name} at {self.analysis.when}"
            return Finding(name, UNDECIDED, note=note)
        samples = _samples(analysis)
        if len(samples) < SEEDS:
            return Finding(name, UNDECIDED, note=f"fewer than {SEEDS} seeds")
        effect = self.effect(analysis.steps, samples)
        return Finding(name, decide(effect, self.region), effect, f"{len(samples)} seeds")

    def effect(self, steps: np.ndarray, samples: np.ndarray) -> Estimate:
        """Estimates the trend from means over seeds, since the gradient of a maximum is zero almost everywhere."""
        third = max(1, samples.shape[1] // 3)
        first, last = samples[:, :third].mean(axis=1), samples[:, -third:].mean(axis=1)
        decades = lambda picks: np.log10(last[picks].mean(axis=-1) / first[picks].mean(axis=-1))  # noqa: E731
        return estimate(decades, np.arange(len(samples)))

    def words(self) -> str:
        names = ", ".join(style_of(method).label for method in self.methods)
        return f"{self.analysis.name} at {self.analysis.when}: {names} {self.verb}"


class Decays(Shape):
    region, verb = Region(high=-EDGE), "falls by more than half a decade"


class Persists(Shape):
    region, verb = Region(low=-EDGE), "does not fall by half a decade"


class Grows(Shape):
    region, verb = Region(low=EDGE), "rises by more than half a decade"


class Flat(Shape):
    region, verb = Region(-EDGE, EDGE), "neither rises nor falls by half a decade"


class LikeOneOverT(Shape):
    """The slope of log value against log t, after the first tenth of the steps, is -1 ± 0.1."""

    unit = "exponent of t"
    region, verb = Region(-1.1, -0.9), "is proportional to tᵏ with k within 0.1 of -1"

    def effect(self, steps: np.ndarray, samples: np.ndarray) -> Estimate:
        late = np.arange(len(steps)) >= max(1, int(LAST * len(steps)))
        time = np.log(steps[late] + 1)
        centered = time - time.mean()
        values = np.log(samples[:, late])
        slopes = (values * centered).sum(axis=1) / (centered**2).sum()
        return estimate(lambda drawn: drawn.mean(axis=-1), slopes)


@dataclass(frozen=True)
class Ordered:
    """Tests whether values, averaged over the second half of the steps, fall from each method to the next.

    The margin is a hundredth of the length of encodings, which are unit vectors.
    """

    analysis: AnalysisKey
    methods: tuple[str, ...]
    margin: float = 0.01

    unit = "difference of the means"

    @property
    def region(self) -> Region:
        return Region(low=self.margin)

    def evaluate(self, evidence: Evidence) -> Verdict:
        pairs = zip(self.methods, self.methods[1:], strict=False)
        return conclude([self._pair(evidence, *pair) for pair in pairs])

    def _pair(self, evidence: Evidence, more: str, less: str) -> Finding:
        about = f"{style_of(more).label} above {style_of(less).label}"
        found = [evidence.analysis(self.analysis, method) for method in (more, less)]
        means = [a.values[..., a.values.shape[-1] // 2 :].mean(axis=(1, 2)) for a in found if a]
        if len(means) < 2 or min(map(len, means)) < SEEDS:
            return Finding(about, UNDECIDED, note=f"fewer than {SEEDS} seeds of both")
        effect = estimate(difference, *means)
        note = f"{len(means[0])} and {len(means[1])} seeds"
        return Finding(about, decide(effect, self.region), effect, note)

    def words(self) -> str:
        names = " above ".join(style_of(method).label for method in self.methods)
        return f"{self.analysis.name} at {self.analysis.when}: {names}"
