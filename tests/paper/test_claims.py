"""Claims on records whose truth is known: what is better is found better, what is equal is not."""

import math

import numpy as np
import pytest

from splagger import ENVS, METHODS
from splagger.paper.claims import CLAIMS, evaluate_claims
from splagger.paper.comparisons import AtLeast, Beats, Comparable, Fails, Learns, Sooner
from splagger.paper.figures import ROWS, CurvePanel
from splagger.paper.trends import Decays, Flat, Grows, LikeOneOverT, Ordered, Persists
from splagger.paper.verdicts import FAILS, HOLDS, UNKNOWN, Finding, Region, conclude, decide
from splagger.paper_numbers import USUAL
from splagger.plots.panels import AnalysisKey
from splagger.stats.estimates import Estimate, at_the_end
from splagger.stats.evidence import FRESH, Evidence, Series
from tests.synthetic import learning, write_analysis, write_run

RNN, OTHER = Series("t-ls", "rnn"), Series("t-ls", "amrl")
MADE = AnalysisKey("gradient-first", "initialization")


def evidence(root, **curves):
    """T-LS with these methods, five seeds at one rate."""
    for method, curve in curves.items():
        write_run(root, "t-ls", method, curve, seeds=range(5))
    return Evidence.read(root)


def outcome(test, found):
    return test.judge(found).outcome


EDGES = [
    ((1.0, 3.0), Region(low=0.5), HOLDS),
    ((1.0, 3.0), Region(low=1.0), UNKNOWN),
    ((1.0, 3.0), Region(low=3.0), FAILS),
    ((1.0, 3.0), Region(high=3.5), HOLDS),
    ((1.0, 3.0), Region(high=1.0), FAILS),
    ((1.0, 3.0), Region(0.0, 2.0), UNKNOWN),
    ((1.0, 3.0), Region(0.0, 4.0), HOLDS),
    ((1.0, 3.0), Region(4.0, 5.0), FAILS),
    ((1.0, 1.0), Region(low=1.0), FAILS),
]


@pytest.mark.parametrize("interval, region, expected", EDGES)
def test_a_verdict_asks_whether_the_interval_lies_in_the_region(interval, region, expected):
    assert decide(Estimate(2.0, *interval), region) == expected


def test_one_refuted_part_refutes_and_one_unknown_part_leaves_open():
    parts = {o: Finding("", o) for o in (HOLDS, FAILS, UNKNOWN)}
    assert conclude([parts[HOLDS], parts[HOLDS]]).outcome == HOLDS
    assert conclude([parts[HOLDS], parts[UNKNOWN]]).outcome == UNKNOWN
    assert conclude([parts[UNKNOWN], parts[FAILS], parts[HOLDS]]).outcome == FAILS


def test_a_better_method_is_found_better_and_a_worse_one_is_not(tmp_path):
    found = evidence(tmp_path, rnn=learning(14, noise=0.5), amrl=learning(8, noise=0.5))
    assert outcome(Beats(RNN, (OTHER,)), found) == outcome(AtLeast(RNN, (OTHER,)), found) == HOLDS
    for kind in (Beats, AtLeast):
        assert outcome(kind(OTHER, (RNN,)), found) == FAILS
    assert outcome(Comparable(RNN, (OTHER,)), found) == FAILS


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_equal_methods_are_comparable_and_neither_beats_the_other(tmp_path, noise):
    same = learning(14, noise=noise)
    shifted = lambda rate, seed: same(rate, seed + 100)  # noqa: E731
    found = evidence(tmp_path, rnn=same, amrl=shifted)
    for first, second in ((RNN, OTHER), (OTHER, RNN)):
        assert outcome(Beats(first, (second,)), found) == FAILS
        assert outcome(AtLeast(first, (second,)), found) == HOLDS
        assert outcome(Comparable(first, (second,)), found) == HOLDS


def test_noise_that_hides_the_truth_is_told_as_such(tmp_path):
    wild = lambda rate, seed: np.full(41, [2.0, 16.0][seed % 2])  # noqa: E731
    found = evidence(tmp_path, rnn=wild, amrl=lambda rate, seed: np.full(41, 9.0))
    for kind in (Beats, AtLeast, Comparable):
        assert outcome(kind(RNN, (OTHER,)), found) == UNKNOWN


def test_equal_methods_are_rarely_told_apart(tmp_path):
    """Of 40 pairs drawn from one distribution, hardly any is called better."""
    wrong = 0
    for trial in range(40):
        root = tmp_path / str(trial)
        for number, method in enumerate(("rnn", "amrl")):
            values = np.random.default_rng([trial, number]).normal(9, 2, size=10)
            curve = lambda rate, seed, values=values: np.full(41, values[seed])  # noqa: E731
            write_run(root, "t-ls", method, curve, seeds=range(10))
        wrong += outcome(Beats(RNN, (OTHER,)), Evidence.read(root)) == HOLDS
    assert wrong <= 3


def test_the_effect_is_a_fraction_of_the_scale(tmp_path):
    constant = lambda value: lambda rate, seed: np.full(41, value)  # noqa: E731
    found = evidence(tmp_path, rnn=constant(9.0), amrl=constant(5.5))
    (finding,) = Beats(RNN, (OTHER,)).judge(found).findings
    assert finding.effect == pytest.approx((0.25, 0.25, 0.25))
    assert "P(more) = 1.00" in finding.note


def test_without_a_known_scale_the_best_of_those_compared_is_one(tmp_path):
    for method, final in (("splagger", 1000.0), ("pearl", 600.0)):
        write_run(tmp_path, "walker", method, learning(final, speed=50))
    test = Beats(Series("walker", "splagger"), (Series("walker", "pearl"),), measure=at_the_end)
    (finding,) = test.judge(Evidence.read(tmp_path)).findings
    assert finding.effect.value == pytest.approx(0.4) and finding.outcome == HOLDS


def test_missing_methods_few_seeds_and_short_runs_are_not_enough_data(tmp_path):
    found = evidence(tmp_path, rnn=learning(14))
    (finding,) = Beats(RNN, (OTHER,)).judge(found).findings
    assert (finding.outcome, finding.note) == (UNKNOWN, "no run of AMRL on t-ls")
    write_run(tmp_path, "t-ls", "amrl", learning(8), seeds=(0, 1))
    (finding,) = Beats(RNN, (OTHER,)).judge(Evidence.read(tmp_path)).findings
    assert "fewer than 3 seeds of AMRL" in finding.note
    short = lambda rate, seed: learning(8)(rate, seed)[:20]  # noqa: E731
    write_run(tmp_path, "t-ls", "cnp", short)
    write_run(tmp_path, "own", "rnn", learning(8))
    write_run(tmp_path, "own", "cnp", short)
    pairs = {
        "runs of CNP on t-ls are shorter than the paper's": (RNN, (Series("t-ls", "cnp"),)),
        "the runs differ in length": (Series("own", "rnn"), (Series("own", "cnp"),)),
    }
    for note, pair in pairs.items():
        for kind in (Beats, lambda *pair: Sooner(*pair, level=9.0)):
            (finding,) = kind(*pair).judge(Evidence.read(tmp_path)).findings
            assert (finding.outcome, finding.note) == (UNKNOWN, note)
    (finding,) = Learns("t-ls", ("cnp",), 4.0).judge(Evidence.read(tmp_path)).findings
    assert finding.outcome == UNKNOWN and "shorter" in finding.note


def test_where_nothing_was_learned_there_is_no_scale(tmp_path):
    """On a robot the best of those compared is the scale; here both have got worse."""
    for method, final in (("splagger", -5.0), ("pearl", -10.0)):
        write_run(tmp_path, "walker", method, learning(final))
    test = Beats(Series("walker", "splagger"), (Series("walker", "pearl"),))
    (finding,) = test.judge(Evidence.read(tmp_path)).findings
    assert (finding.outcome, finding.note) == (UNKNOWN, "neither is better than untrained")


def test_a_refuted_comparison_does_not_wait_for_missing_ones(tmp_path):
    found = evidence(tmp_path, rnn=learning(8), cnp=learning(14))
    assert outcome(Beats(RNN, (OTHER, Series("t-ls", "cnp"))), found) == FAILS


def test_diverged_seeds_pull_a_method_down(tmp_path):
    def lost(rate, seed):
        return np.where(np.arange(41) > 10, np.nan, learning(16, start=2, speed=40)(rate, seed))

    found = evidence(tmp_path, rnn=learning(16, start=2, speed=40), amrl=lost)
    assert outcome(Beats(RNN, (OTHER,)), found) == HOLDS
    assert outcome(Fails("t-ls", ("amrl",), 14.6), found) == HOLDS
    some = lambda rate, seed: lost(rate, seed) if seed == 0 else learning(16, 40, 2)(rate, seed)  # noqa: E731
    found = evidence(tmp_path / "some", amrl=some)
    assert outcome(Learns("t-ls", ("amrl",), 14.6), found) == UNKNOWN


def test_levels_are_judged_at_the_end_of_training(tmp_path):
    found = evidence(tmp_path, rnn=learning(16, noise=0.1), amrl=learning(9, noise=0.1))
    assert outcome(Learns("t-ls", ("rnn",), 14.6), found) == HOLDS
    assert outcome(Fails("t-ls", ("rnn",), 14.6), found) == FAILS
    assert outcome(Learns("t-ls", ("rnn", "amrl"), 14.6), found) == FAILS
    assert outcome(Fails("t-ls", ("amrl",), 14.6), found) == HOLDS


def test_sooner_counts_frames_and_gives_the_benefit_of_the_doubt_to_those_that_never_arrive(
    tmp_path,
):
    steps = lambda at: lambda rate, seed: np.where(np.arange(41) < at, 2.0, 16.0)  # noqa: E731
    found = evidence(tmp_path, rnn=steps(8), amrl=steps(16), cnp=steps(9), pearl=steps(99))
    pick = lambda method: (Series("t-ls", method),)  # noqa: E731
    assert outcome(Sooner(RNN, pick("amrl"), 14.6), found) == HOLDS
    assert outcome(Sooner(RNN, pick("cnp"), 14.6), found) == FAILS
    (finding,) = Sooner(RNN, pick("pearl"), 14.6).judge(found).findings
    assert finding.effect.value == pytest.approx(math.log2(40 / 11)) and finding.outcome == HOLDS
    assert outcome(Sooner(pick("pearl")[0], pick("amrl"), 14.6), found) == FAILS
    assert "0 and 5 seeds never get there" in finding.note


def test_who_never_arrives_neither_confirms_nor_refutes(tmp_path):
    steps = lambda at: lambda rate, seed: np.where(np.arange(41) < at, 2.0, 16.0)  # noqa: E731
    found = evidence(tmp_path, rnn=steps(29), pearl=steps(99), cnp=steps(30))
    late = Series("t-ls", "pearl")
    assert (
        outcome(Sooner(RNN, (late,), 14.6), found) == UNKNOWN
    )  # 40/32 is only the least that it may be
    assert outcome(Sooner(late, (late,), 14.6), found) == UNKNOWN
    some = lambda rate, seed: steps(1 if seed else 99)(rate, seed)  # noqa: E731
    found = evidence(tmp_path / "some", amrl=some, cnp=steps(30))
    slow = Series("t-ls", "cnp")
    assert outcome(Sooner(OTHER, (slow,), 14.6), found) != HOLDS


def test_claims_are_judged_on_fresh_seeds(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(16), rates=(1e-3, 3e-4))
    fresh = dict(rates=(1e-3,), seeds=range(10, 20), name="fresh")
    write_run(tmp_path, "t-ls", "rnn", learning(3), **fresh)
    (finding,) = Learns("t-ls", ("rnn",), 14.6).judge(Evidence.read(tmp_path)).findings
    assert finding.outcome == FAILS and finding.note == f"seeds: 10 ({FRESH})"


SHAPES = {
    "decay": (lambda t: 1 / (t + 1), (Decays,)),
    "exponential": (lambda t: 0.9**t, (Decays,)),
    "flat": (lambda t: 1 + 0.3 * math.sin(t), (Flat, Persists)),
    "linear": (lambda t: t + 1.0, (Grows, Persists)),
    "slow": (lambda t: 1 + t / 100, (Flat, Persists)),
    "zero": (lambda t: 0.0, (Flat, Persists)),
    "vanished": (lambda t: float(t < 50), (Decays,)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_trends_are_what_they_are(tmp_path, name):
    curve, true = SHAPES[name]
    write_analysis(tmp_path, *MADE, {"rnn": curve})
    found = Evidence.read(tmp_path / "none", analyses=tmp_path)
    outcomes = {
        kind: outcome(kind(MADE, ("rnn",)), found) for kind in (Decays, Flat, Grows, Persists)
    }
    assert outcomes == {kind: HOLDS if kind in true else FAILS for kind in outcomes}


@pytest.mark.parametrize("power, expected", [(-1, HOLDS), (-0.5, FAILS), (-1.5, FAILS), (0, FAILS)])
def test_the_exponent_of_t_is_measured(tmp_path, power, expected):
    write_analysis(tmp_path, *MADE, {"pearl": lambda t: (t + 1.0) ** power}, 3, 12)
    found = Evidence.read(tmp_path / "none", analyses=tmp_path)
    (finding,) = LikeOneOverT(MADE, ("pearl",)).judge(found).findings
    assert finding.outcome == expected and finding.effect.value == pytest.approx(power)
    assert finding.note == "3 seeds"


def test_dimensions_of_one_agent_are_one_sample(tmp_path):
    write_analysis(tmp_path, *MADE, {"pearl": lambda t: 1 / (t + 1)}, 1, 12)
    found = Evidence.read(tmp_path / "none", analyses=tmp_path)
    for kind in (Decays, LikeOneOverT):
        (finding,) = kind(MADE, ("pearl",)).judge(found).findings
        assert (finding.outcome, finding.note) == (UNKNOWN, "fewer than 3 seeds")


def test_orders_are_judged_pair_by_pair(tmp_path):
    levels = {"rnn": 0.5, "splagger": 0.3, "splagger-nornn": 0.0, "amrl": 0.3}
    curves = {method: lambda t, level=level: level for method, level in levels.items()}
    write_analysis(tmp_path, *MADE, curves)
    found = Evidence.read(tmp_path / "none", analyses=tmp_path)
    assert outcome(Ordered(MADE, ("rnn", "splagger", "splagger-nornn")), found) == HOLDS
    assert outcome(Ordered(MADE, ("rnn", "splagger-nornn", "splagger")), found) == FAILS
    assert outcome(Ordered(MADE, ("splagger", "amrl")), found) != HOLDS  # they are equal
    assert outcome(Ordered(MADE, ("rnn", "cnp")), found) == UNKNOWN


def test_without_any_data_no_claim_has_a_verdict_and_all_say_why():
    results = evaluate_claims(Evidence([]))
    assert len(results) == len(CLAIMS) >= 25
    for claim, verdict in results:
        assert verdict.outcome == UNKNOWN
        assert all(finding.note and finding.effect is None for finding in verdict.findings)
        assert claim.test.words() and claim.test.unit and claim.section and claim.sentence
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


def series_of(test):
    levels = [Series(test.env, m) for m in test.methods] if hasattr(test, "env") else []
    return [*levels, *([test.first, *test.others] if hasattr(test, "first") else [])]


def test_the_usual_lengths_are_those_of_the_environments():
    assert {n: (row.episodes, row.frames) for n, row in ENVS.items() if not row.small} == USUAL


def test_claims_ask_for_what_the_figures_show_and_no_more():
    shown = {
        (s.env, s.method)
        for row in ROWS
        for p in row.panels
        if isinstance(p, CurvePanel)
        for s, _ in p.entries
    }
    for claim in CLAIMS:
        for series in series_of(claim.test):
            assert (series.env, series.method) in shown, claim.name
            assert series.method in METHODS
            assert series.env in ENVS or series.env in ("cheetah-dir", "walker")
