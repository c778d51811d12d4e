"""The paper's empirical claims as rows of data, each with its test.

Thresholds come from the environments and from the wording of the paper, not from results. They are fractions of the
scale from guessing to the best known policy:

- "Learned" is 90% of the scale, which no policy without the required memory reaches; "near zero" is 10%.
- A difference below 2% is negligible; methods within 10% are similar.
- On the Planning Game, the suboptimal policy explores again after every goal and earns 17.85. A method is beyond it if
  it ends more than 2% of the scale above. The first version of this threshold was 90% of the scale. SplAgger and the
  RNN ended below that, so it would have called every method suboptimal. It was changed before AMRL and
  SplAgger-noSplit were trained. For SplAgger and SplAgger-noRNN, the verdict is the same at both levels.
"""

from collections.abc import Sequence
from typing import NamedTuple

from splagger.paper.comparisons import (
    AtLeast,
    Beats,
    Comparable,
    Comparison,
    Fails,
    Learns,
    Level,
    Sooner,
)
from splagger.paper.trends import Decays, Flat, Grows, LikeOneOverT, Ordered, Persists, Shape
from splagger.paper.verdicts import Verdict
from splagger.paper_numbers import SCALES
from splagger.runs.analyses import INITIALIZATION, AnalysisKey
from splagger.stats.estimates import at_the_end
from splagger.stats.evidence import Evidence, Series

Test = Comparison | Level | Sooner | Shape | Ordered


class Claim(NamedTuple):
    """A claim of the paper and its test."""

    name: str
    section: str
    sentence: str  # a paraphrase of the paper
    test: Test


def evaluate_claims(evidence: Evidence) -> list[tuple[Claim, Verdict]]:
    """Returns every claim with its verdict."""
    return [(claim, claim.test.evaluate(evidence)) for claim in CLAIMS]


def _on(env: str, *methods: str) -> tuple[Series, ...]:
    return tuple(Series(env, method) for method in methods)


def _level(env: str, fraction: float) -> float:
    guess, best = SCALES[env]
    return guess + fraction * (best - guess)


def learned(env: str) -> float:
    """Returns the return from which on an agent has learned: 90% of the way from guessing to the best known."""
    return _level(env, 0.9)


def _kl(env: str, weights: Sequence[float]) -> tuple[Series, ...]:
    return tuple(Series.create(env, "pearl", kl_weight=weight) for weight in weights)


def _temperature(method: str, temperature: float) -> Series:
    return Series.create("t-ls", method, temperature=temperature)


SUBOPTIMAL = SCALES["planning-noobs"].best
BEYOND = SUBOPTIMAL + _level("planning", 0.02) - _level("planning", 0.0)
BASELINES = ("rnn", "cnp", "amrl", "pearl")
BLENDS = ("splagger-avgmax", "splagger-softmax", "splagger-wsoftmax")
FIRST, PARAMETERS, INPUTS, ORDER, VARIANCE, TRAINED = (
    AnalysisKey("gradient-first", INITIALIZATION),
    AnalysisKey("gradient-parameters", INITIALIZATION),
    AnalysisKey("gradient-inputs", INITIALIZATION),
    AnalysisKey("permutation", INITIALIZATION),
    AnalysisKey("pearl-variance", INITIALIZATION),
    AnalysisKey("pearl-variance", "t-ls"),
)
(MC, PLAN, T_LS, AGREE, LATENT, CHEETAH, WALKER) = (
    Series(env, "splagger")
    for env in ("mc-ls", "planning", "t-ls", "t-agreement", "t-latent", "cheetah-dir", "walker")
)

CLAIMS = (
    Claim(
        "max-over-rnn-mc-ls",
        "4",
        "On MC-LS, the permutation-invariant maximum earns more than the RNN.",
        Beats(Series("mc-ls", "splagger-nornn"), _on("mc-ls", "rnn")),
    ),
    Claim(
        "rnn-over-max-planning",
        "4",
        "On the Planning Game, the RNN earns more than the permutation-invariant maximum.",
        Beats(Series("planning", "rnn"), _on("planning", "splagger-nornn")),
    ),
    Claim(
        "straight-through-hurts-mc-ls",
        "4",
        "On MC-LS, the straight-through gradient makes the maximum worse.",
        Beats(Series("mc-ls", "splagger-nornn"), _on("mc-ls", "amrl-nornn")),
    ),
    Claim(
        "straight-through-hurts-planning",
        "4",
        "On the Planning Game, the straight-through gradient makes the maximum worse.",
        Beats(Series("planning", "splagger-nornn"), _on("planning", "amrl-nornn")),
    ),
    Claim(
        "splagger-highest-preview-mc-ls",
        "4",
        "On MC-LS, SplAgger earns at least as much as the RNN, the maximum and the straight-through maximum.",
        AtLeast(MC, _on("mc-ls", "rnn", "splagger-nornn", "amrl-nornn")),
    ),
    Claim(
        "splagger-highest-preview-planning",
        "4",
        "On the Planning Game, SplAgger earns at least as much as the RNN, the maximum and the straight-through maximum.",
        AtLeast(PLAN, _on("planning", "rnn", "splagger-nornn", "amrl-nornn")),
    ),
    Claim(
        "splagger-highest-cheetah",
        "5.1",
        "On Cheetah-Dir, no baseline earns more than SplAgger.",
        AtLeast(CHEETAH, _on("cheetah-dir", *BASELINES)),
    ),
    Claim(
        "pearl-lower-cheetah",
        "5.1",
        "On Cheetah-Dir, PEARL earns significantly less than SplAgger.",
        Beats(CHEETAH, _on("cheetah-dir", "pearl")),
    ),
    Claim(
        "similar-on-walker",
        "5.1",
        "On Walker, all methods perform similarly.",
        Comparable(WALKER, _on("walker", *BASELINES)),
    ),
    Claim(
        "splagger-fastest-t-ls",
        "5.2",
        "On T-LS, SplAgger has the highest sample efficiency.",
        Beats(T_LS, _on("t-ls", *BASELINES)),
    ),
    Claim(
        "splagger-fastest-mc-ls",
        "5.2",
        "On MC-LS, SplAgger has the highest sample efficiency.",
        Beats(MC, _on("mc-ls", *BASELINES)),
    ),
    Claim(
        "rnn-fails-t-ls",
        "5.2",
        "On T-LS, the RNN does not learn the optimal policy within the given frames.",
        Fails("t-ls", ("rnn",), learned("t-ls")),
    ),
    Claim(
        "rnn-fails-mc-ls",
        "5.2",
        "On MC-LS, the RNN does not learn the optimal policy within the given frames.",
        Fails("mc-ls", ("rnn",), learned("mc-ls")),
    ),
    Claim(
        "pearl-fails-t-ls",
        "5.2",
        "On T-LS, PEARL does not learn the optimal policy within the given frames.",
        Fails("t-ls", ("pearl",), learned("t-ls")),
    ),
    Claim(
        "pearl-fails-mc-ls",
        "5.2",
        "On MC-LS, PEARL does not learn the optimal policy within the given frames.",
        Fails("mc-ls", ("pearl",), learned("mc-ls")),
    ),
    Claim(
        "cnp-learns-t-ls",
        "5.2",
        "On T-LS, CNP learns the optimal policy.",
        Learns("t-ls", ("cnp",), learned("t-ls")),
    ),
    Claim(
        "cnp-learns-mc-ls",
        "5.2",
        "On MC-LS, CNP learns the optimal policy.",
        Learns("mc-ls", ("cnp",), learned("mc-ls")),
    ),
    Claim(
        "cnp-slower-t-ls",
        "5.2",
        "On T-LS, CNP requires significantly more frames than SplAgger.",
        Sooner(T_LS, _on("t-ls", "cnp"), learned("t-ls")),
    ),
    Claim(
        "amrl-similar-t-ls",
        "5.2",
        "On T-LS, AMRL performs similarly to SplAgger.",
        Comparable(T_LS, _on("t-ls", "amrl")),
    ),
    Claim(
        "amrl-similar-mc-ls",
        "5.2",
        "On MC-LS, AMRL performs similarly to SplAgger.",
        Comparable(MC, _on("mc-ls", "amrl")),
    ),
    Claim(
        "splagger-fastest-planning",
        "5.3",
        "On the Planning Game, SplAgger learns faster than all methods but the RNN.",
        Beats(PLAN, _on("planning", "amrl", "amrl-nornn", "splagger-nornn", "splagger-nosplit")),
    ),
    Claim(
        "rnn-fastest-planning",
        "5.3",
        "On the Planning Game, the RNN learns faster than all methods but SplAgger.",
        Beats(
            Series("planning", "rnn"),
            _on("planning", "amrl", "amrl-nornn", "splagger-nornn", "splagger-nosplit"),
        ),
    ),
    Claim(
        "suboptimal-planning",
        "5.3",
        "On the Planning Game, AMRL and SplAgger without the split learn a suboptimal policy.",
        Fails("planning", ("amrl", "splagger-nosplit"), BEYOND),
    ),
    Claim(
        "amrl-nornn-near-zero-planning",
        "5.3",
        "On the Planning Game, AMRL without an RNN does not learn a reasonable policy and earns almost nothing.",
        Fails("planning", ("amrl-nornn",), _level("planning", 0.1)),
    ),
    Claim(
        "beyond-suboptimal-planning",
        "5.3",
        "On the Planning Game, SplAgger ends above the suboptimal exploration policy with and without an RNN.",
        Learns("planning", ("splagger", "splagger-nornn"), BEYOND),
    ),
    Claim(
        "similar-end-planning",
        "5.3",
        "On the Planning Game, SplAgger ends with similar returns with and without an RNN.",
        Comparable(PLAN, _on("planning", "splagger-nornn"), measure=at_the_end),
    ),
    Claim(
        "rnn-helps-early-planning",
        "5.3, 6.1",
        "On the Planning Game, SplAgger initially learns faster with an RNN than without.",
        Sooner(PLAN, _on("planning", "splagger-nornn"), 0.9 * SUBOPTIMAL),
    ),
    Claim(
        "splagger-highest-agreement",
        "5.3",
        "On T-Maze Agreement, neither the RNN nor any other operator earns more than SplAgger.",
        AtLeast(AGREE, _on("t-agreement", "rnn", "splagger-avg", *BLENDS)),
    ),
    Claim(
        "rnn-avg-learn-agreement",
        "5.3",
        "On T-Maze Agreement, the RNN and the average are able to learn the task.",
        Learns("t-agreement", ("rnn", "splagger-avg"), learned("t-agreement")),
    ),
    Claim(
        "rnn-avg-slower-agreement",
        "5.3",
        "On T-Maze Agreement, the RNN and the average require more frames than SplAgger.",
        Sooner(AGREE, _on("t-agreement", "rnn", "splagger-avg"), learned("t-agreement")),
    ),
    Claim(
        "blends-as-quick-agreement",
        "5.3",
        "On T-Maze Agreement, avgmax, softmax and wsoftmax learn almost as quickly as SplAgger.",
        Comparable(AGREE, _on("t-agreement", *BLENDS)),
    ),
    Claim(
        "operators-alike-latent",
        "5.3",
        "On T-Maze Latent, all operators used with SplAgger learn at about the same speed.",
        Comparable(LATENT, _on("t-latent", "splagger-avg", *BLENDS)),
    ),
    Claim(
        "average-over-max-latent",
        "5.3",
        "On T-Maze Latent, without an RNN and without the split, the average outperforms the maximum.",
        Beats(Series("t-latent", "cnp"), _on("t-latent", "splagger-nornn")),
    ),
    Claim(
        "rnn-explores-noobs",
        "6.1",
        "Without observations, the RNN learns to explore again after every goal.",
        Learns("planning-noobs", ("rnn",), learned("planning-noobs")),
    ),
    Claim(
        "max-cannot-explore-noobs",
        "6.1",
        "Without observations, SplAgger without an RNN does not learn to explore again after every goal.",
        Fails("planning-noobs", ("splagger-nornn",), learned("planning-noobs")),
    ),
    Claim(
        "first-gradient-decays",
        "6.2",
        "The gradient with respect to the first input decays over time in standard sequence models.",
        Decays(FIRST, ("rnn", "splagger", "splagger-nornn")),
    ),
    Claim(
        "first-gradient-persists-amrl",
        "6.2",
        "AMRL prevents the gradient with respect to the first input from decaying.",
        Persists(FIRST, ("amrl",)),
    ),
    Claim(
        "parameter-gradient-explodes-amrl",
        "6.2",
        "AMRL's gradient with respect to the parameters grows with the number of inputs.",
        Grows(PARAMETERS, ("amrl",)),
    ),
    Claim(
        "input-gradient-flat",
        "6.2",
        "The final gradient with respect to each input is roughly constant for all models but the RNN.",
        Flat(INPUTS, ("amrl", "splagger", "splagger-nornn")),
    ),
    Claim(
        "input-gradient-grows-rnn",
        "6.2",
        "The RNN's final gradient grows toward the last input: it favors recent transitions.",
        Grows(INPUTS, ("rnn",)),
    ),
    Claim(
        "permutation-order",
        "6.2",
        "The RNN depends most on the order of its inputs, SplAgger less, and SplAgger without an RNN least.",
        Ordered(ORDER, ("rnn", "splagger", "splagger-nornn")),
    ),
    Claim(
        "kl-weight-t-ls",
        "Appendix B",
        "On T-LS, a KL weight of 10⁻⁶ gives PEARL the highest return over training.",
        AtLeast(_kl("t-ls", [1e-6])[0], _kl("t-ls", (1.0, 1e-2, 1e-4, 0.0))),
    ),
    Claim(
        "kl-weight-walker",
        "Appendix B",
        "On Walker, a KL weight of 10⁻⁶ gives PEARL the highest return over training.",
        AtLeast(_kl("walker", [1e-6])[0], _kl("walker", (1.0, 1e-2, 1e-4, 0.0))),
    ),
    Claim(
        "kl-weight-zero-t-ls",
        "Appendix B",
        "On T-LS, PEARL ends with similar returns at a KL weight of 0: the stochastic latent is not useful.",
        Comparable(_kl("t-ls", [1e-6])[0], _kl("t-ls", [0.0]), measure=at_the_end),
    ),
    Claim(
        "temperature-softmax",
        "Appendix B",
        "On T-LS, the softmax learns better with an initial temperature of 0.1 than of 1.",
        Beats(_temperature("softmax-nornn", 0.1), (_temperature("softmax-nornn", 1.0),)),
    ),
    Claim(
        "temperature-wsoftmax",
        "Appendix B",
        "On T-LS, the weighted softmax learns better with an initial temperature of 0.1 than of 1.",
        Beats(_temperature("wsoftmax-nornn", 0.1), (_temperature("wsoftmax-nornn", 1.0),)),
    ),
    Claim(
        "vari-helps-t-ls",
        "Appendix C",
        "On T-LS, training by reconstruction slightly raises PEARL's returns.",
        Beats(Series("t-ls", "pearl-vari"), _on("t-ls", "pearl")),
    ),
    Claim(
        "vari-helps-cheetah",
        "Appendix C",
        "On Cheetah-Dir, training by reconstruction slightly raises PEARL's returns.",
        Beats(Series("cheetah-dir", "pearl-vari"), _on("cheetah-dir", "pearl")),
    ),
    Claim(
        "vari-below-splagger-t-ls",
        "Appendix C",
        "On T-LS, PEARL-vari stays far below SplAgger.",
        Beats(T_LS, _on("t-ls", "pearl-vari"), margin=0.1),
    ),
    Claim(
        "vari-below-splagger-cheetah",
        "Appendix C",
        "On Cheetah-Dir, PEARL-vari stays far below SplAgger.",
        Beats(CHEETAH, _on("cheetah-dir", "pearl-vari"), margin=0.1),
    ),
    Claim(
        "variance-falls-initialization",
        "Appendix D",
        "At initialization, the variance of PEARL's latent falls rapidly to zero.",
        Decays(VARIANCE, ("pearl",)),
    ),
    Claim(
        "variance-falls-trained",
        "Appendix D",
        "After training, the variance of PEARL's latent also falls rapidly to zero.",
        Decays(TRAINED, ("pearl",)),
    ),
    Claim(
        "variance-like-one-over-t",
        "Appendix D",
        "At initialization, the variance of PEARL's latent falls like 1/t.",
        LikeOneOverT(VARIANCE, ("pearl",)),
    ),
    Claim(
        "invinit-lower-planning",
        "Appendix E",
        "On the Planning Game, the invariantly initialized LSTM earns far less than SplAgger.",
        Beats(PLAN, _on("planning", "lstm-invinit"), margin=0.1),
    ),
    Claim(
        "invinit-lower-agreement",
        "Appendix E",
        "On T-Maze Agreement, the invariantly initialized LSTM earns far less than SplAgger.",
        Beats(AGREE, _on("t-agreement", "lstm-invinit"), margin=0.1),
    ),
    Claim(
        "transformer-fails-t-ls",
        "Appendix F",
        "On T-LS, the Transformer does not learn within the given frames.",
        Fails("t-ls", ("transformer",), learned("t-ls")),
    ),
    Claim(
        "transformer-below-splagger",
        "Appendix F",
        "On T-LS, SplAgger significantly outperforms the Transformer.",
        Beats(T_LS, _on("t-ls", "transformer")),
    ),
    Claim(
        "wavg-below-max",
        "Appendix G",
        "On T-Maze Agreement, the weighted average performs worse than the maximum.",
        Beats(AGREE, _on("t-agreement", "splagger-wavg")),
    ),
    Claim(
        "wavg-below-softmax",
        "Appendix G",
        "On T-Maze Agreement, the weighted average performs worse than the softmax.",
        Beats(Series("t-agreement", "splagger-softmax"), _on("t-agreement", "splagger-wavg")),
    ),
    Claim(
        "wavg-below-wsoftmax",
        "Appendix G",
        "On T-Maze Agreement, the weighted average performs worse than the weighted softmax.",
        Beats(Series("t-agreement", "splagger-wsoftmax"), _on("t-agreement", "splagger-wavg")),
    ),
    Claim(
        "wavg-over-avg",
        "Appendix G",
        "On T-Maze Agreement, the weighted average learns slightly faster than the average.",
        Beats(Series("t-agreement", "splagger-wavg"), _on("t-agreement", "splagger-avg")),
    ),
)
