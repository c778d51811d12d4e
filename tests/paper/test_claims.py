"""Claims on synthetic records: better methods are found better, equal methods are not."""

import math
import re
import shutil

import numpy as np
import pytest

from splagger import ENVS, METHODS
from splagger.paper.claims import CLAIMS, evaluate_claims
from splagger.paper.comparisons import AtLeast, Beats, Comparable, Fails, Learns, Sooner
from splagger.paper.figures import ROWS
from splagger.paper.trends import Decays, Flat, Grows, LikeOneOverT, Ordered, Persists
from splagger.paper.verdicts import (
    FAILS,
    FAILS_SO_FAR,
    HOLDS,
    HOLDS_SO_FAR,
    UNDECIDED,
    Finding,
    Region,
    advice,
    conclude,
    decide,
    seeds_to_decide,
)
from splagger.paper_numbers import PAPER
from splagger.plots.panels import CurvePanel
from splagger.runs.analyses import AnalysisKey
from splagger.stats.estimates import Estimate, at_the_end, over_training
from splagger.stats.evidence import Evidence, Series
from splagger.stats.selection import FRESH
from tests.synthetic import frames_between, learning, write_analysis, write_run

RNN, OTHER = Series("t-ls", "rnn"), Series("t-ls", "amrl")
KEY = AnalysisKey("gradient-first", "initialization")


def evidence(root, **curves):
    """Writes runs of these methods on T-LS, five seeds at one rate, and reads them."""
    for method, curve in curves.items():
        write_run(root, "t-ls", method, curve, seeds=range(5))
    return Evidence.read(root)


def outcome(test, found):
    return test.evaluate(found).outcome


EDGES = [
    ((1.0, 3.0), Region(low=0.5), HOLDS),
    ((1.0, 3.0), Region(low=1.0), UNDECIDED),
    ((1.0, 3.0), Region(low=3.0), FAILS),
    ((1.0, 3.0), Region(high=3.5), HOLDS),
    ((1.0, 3.0), Region(high=1.0), FAILS),
    ((1.0, 3.0), Region(0.0, 2.0), UNDECIDED),
    ((1.0, 3.0), Region(0.0, 4.0), HOLDS),
    ((1.0, 3.0), Region(4.0, 5.0), FAILS),
    ((1.0, 1.0), Region(low=1.0), FAILS),
]


@pytest.mark.parametrize("interval, region, expected", EDGES)
def test_a_verdict_depends_on_whether_the_interval_lies_in_the_region(interval, region, expected):
    assert decide(Estimate(2.0, *interval), region) == expected


def test_one_refuted_part_refutes_a_claim_and_one_unknown_part_leaves_it_open():
    parts = {o: Finding("", o) for o in (HOLDS, FAILS, UNDECIDED)}
    assert conclude([parts[HOLDS], parts[HOLDS]]).outcome == HOLDS
    assert conclude([parts[HOLDS], parts[UNDECIDED]]).outcome == UNDECIDED
    assert conclude([parts[UNDECIDED], parts[FAILS], parts[HOLDS]]).outcome == FAILS


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


def test_too_much_noise_leaves_a_claim_open(tmp_path):
    noisy = lambda rate, seed: np.full(41, [2.0, 16.0][seed % 2])  # noqa: E731
    found = evidence(tmp_path, rnn=noisy, amrl=lambda rate, seed: np.full(41, 9.0))
    for kind in (Beats, AtLeast, Comparable):
        assert outcome(kind(RNN, (OTHER,)), found) == UNDECIDED


def test_equal_methods_are_rarely_distinguished(tmp_path):
    """Of 40 pairs drawn from one distribution, the first method beats the second in at most three."""
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
    (finding,) = Beats(RNN, (OTHER,)).evaluate(found).findings
    assert finding.effect == pytest.approx((0.25, 0.25, 0.25))
    assert "P(more) = 1.00" in finding.note


def test_without_a_known_scale_the_best_compared_method_defines_it(tmp_path):
    for method, final in (("splagger", 1000.0), ("pearl", 600.0)):
        write_run(tmp_path, "walker", method, learning(final, speed=50))
    test = Beats(Series("walker", "splagger"), (Series("walker", "pearl"),), measure=at_the_end)
    (finding,) = test.evaluate(Evidence.read(tmp_path)).findings
    assert finding.effect.value == pytest.approx(0.4) and finding.outcome == HOLDS


def test_missing_methods_few_seeds_and_short_runs_leave_a_claim_open(tmp_path):
    found = evidence(tmp_path, rnn=learning(14))
    (finding,) = Beats(RNN, (OTHER,)).evaluate(found).findings
    assert (finding.outcome, finding.note) == (UNDECIDED, "no run of AMRL on t-ls")
    write_run(tmp_path, "t-ls", "amrl", learning(8), seeds=(0, 1))
    (finding,) = Beats(RNN, (OTHER,)).evaluate(Evidence.read(tmp_path)).findings
    assert "fewer than 3 seeds of AMRL" in finding.note
    short = lambda rate, seed: learning(8)(rate, seed)[:20]  # noqa: E731
    write_run(tmp_path, "t-ls", "cnp", short)
    write_run(tmp_path, "own", "rnn", learning(8))
    write_run(tmp_path, "own", "cnp", short)
    pairs = {
        (RNN, (Series("t-ls", "cnp"),)),
        (Series("own", "rnn"), (Series("own", "cnp"),)),
    }
    for pair in pairs:
        (finding,) = Sooner(*pair, level=9.0).evaluate(Evidence.read(tmp_path)).findings
        assert (finding.outcome, finding.note) == (UNDECIDED, "the runs differ in length")
    write_run(tmp_path, "t-ls", "pearl", lambda rate, seed: learning(8)(rate, seed)[:2])
    (finding,) = Learns("t-ls", ("pearl",), 4.0).evaluate(Evidence.read(tmp_path)).findings
    assert finding.outcome == UNDECIDED and finding.effect is not None
    assert finding.note.startswith("at 0.0") and "too few for a verdict; seeds: 3" in finding.note


def test_very_short_runs_show_their_effect_but_decide_nothing(tmp_path):
    """A difference that is clear after 4% of the frames gives no verdict, and no number of seeds that would."""
    for method, level in (("rnn", 14), ("amrl", 8)):
        write_run(
            tmp_path,
            "t-ls",
            method,
            lambda rate, seed, level=level: learning(level, noise=0.1)(rate, seed)[:2],
        )
    (finding,) = Beats(RNN, (OTHER,)).evaluate(Evidence.read(tmp_path)).findings
    assert finding.outcome == UNDECIDED and finding.effect.low > 0.02
    assert "too few for a verdict" in finding.note and "would decide" not in finding.note


def test_runs_that_differ_in_length_are_compared_over_their_shared_frames(tmp_path):
    """Also the rate is chosen there: the long run's other rate is better later, but not by then."""

    def late(rate, seed):
        fast, slow = learning(14, noise=0.1)(rate, seed), learning(16, noise=0.1)(rate, seed)
        return fast if rate == 1e-3 else np.where(np.arange(len(slow)) < 21, 2.0, 10 * slow)

    write_run(tmp_path, "t-ls", "rnn", late, rates=(1e-3, 1e-4))
    write_run(tmp_path, "t-ls", "amrl", lambda *key: learning(8, noise=0.1)(*key)[:21])
    found = Evidence.read(tmp_path)
    assert found.unbiased(RNN).rate == 1e-4
    (finding,) = Beats(RNN, (OTHER,)).evaluate(found).findings
    assert finding.outcome == HOLDS_SO_FAR and finding.note.startswith("at ")
    cut = [found.as_in_paper(s, until=20.0 * frames_between("t-ls")) for s in (RNN, OTHER)]
    assert [(c.rate, c.curves.shape) for c in cut] == [(1e-3, (3, 21))] * 2
    means = [over_training(c.curves).mean() for c in cut]
    assert finding.effect.value == pytest.approx((means[0] - means[1]) / 14)


def test_a_rate_that_is_best_over_shared_frames_needs_seeds_of_its_own(tmp_path):
    """Fresh seeds were trained at the rate that is best in the end. Over the shared frames another one is."""

    def late(rate, seed):
        fast = learning(14)(rate, seed)
        return fast if rate == 1e-3 else np.where(np.arange(len(fast)) < 21, 2.0, 10 * fast)

    write_run(tmp_path, "t-ls", "rnn", late, rates=(1e-3, 1e-4), seeds=(0,))
    write_run(tmp_path, "t-ls", "rnn", late, rates=(1e-4,), seeds=(100, 101, 102), name="fresh")
    write_run(tmp_path, "t-ls", "amrl", lambda *key: learning(8)(*key)[:21])
    found = Evidence.read(tmp_path)
    assert len(found.unbiased(RNN).curves) == 3
    (finding,) = Beats(RNN, (OTHER,)).evaluate(found).findings
    expected = "fewer than 3 seeds at the rate that is best over the shared frames"
    assert (finding.outcome, finding.note) == (UNDECIDED, expected)


def test_annealed_runs_that_differ_in_length_leave_a_claim_open(tmp_path):
    """The end of a short annealed run is not what a long one is at that point."""
    write_run(tmp_path, "t-ls", "rnn", learning(14), anneal=True)
    short = lambda *key: learning(8)(*key)[:21]  # noqa: E731
    amrl = write_run(tmp_path, "t-ls", "amrl", short, anneal=True)
    (finding,) = Beats(RNN, (OTHER,)).evaluate(Evidence.read(tmp_path)).findings
    expected = "the runs differ in length, and their learning rates are annealed"
    assert (finding.outcome, finding.note) == (UNDECIDED, expected)
    shutil.rmtree(amrl)
    write_run(tmp_path, "t-ls", "amrl", learning(8), anneal=True)
    (finding,) = Beats(RNN, (OTHER,)).evaluate(Evidence.read(tmp_path)).findings
    assert finding.outcome == HOLDS


def test_unfinished_annealed_runs_have_the_schedule_of_their_planned_frames(tmp_path):
    """Both runs have reached the same frame, but one of them at half of its learning rate."""
    short = lambda final: lambda *key: learning(final)(*key)[:21]  # noqa: E731
    frames = frames_between("t-ls") * 40
    write_run(tmp_path, "t-ls", "rnn", short(14), anneal=True)
    going = {"frames": frames, "reached": frames // 2, "finished": False}
    write_run(tmp_path, "t-ls", "amrl", short(8), anneal=True, **going)
    (finding,) = Beats(RNN, (OTHER,)).evaluate(Evidence.read(tmp_path)).findings
    assert finding.outcome == UNDECIDED and finding.note.endswith("annealed")


def test_verdicts_from_runs_shorter_than_the_papers_say_so(tmp_path):
    def half(final):
        return lambda rate, seed: learning(final, noise=0.1)(rate, seed)[:21]

    found = evidence(tmp_path, rnn=half(14), amrl=half(8))
    tests = {
        Beats(RNN, (OTHER,)): HOLDS_SO_FAR,
        Beats(OTHER, (RNN,)): FAILS_SO_FAR,
        Learns("t-ls", ("rnn",), 3.0): HOLDS_SO_FAR,
        Fails("t-ls", ("rnn",), 3.0): FAILS_SO_FAR,
    }
    for test, expected in tests.items():
        verdict = test.evaluate(found)
        assert verdict.outcome == expected
        assert verdict.findings[0].note.startswith("at 0.75 of 1.5 million frames; ")
    parts = [Finding("", outcome) for outcome in (HOLDS, HOLDS_SO_FAR)]
    assert conclude(parts).outcome == HOLDS_SO_FAR
    assert conclude([*parts, Finding("", FAILS_SO_FAR)]).outcome == FAILS_SO_FAR
    assert conclude([*parts, Finding("", FAILS)]).outcome == FAILS


def test_seeds_to_decide_shrink_the_interval_to_the_boundary():
    effect = Estimate(0.05, -0.05, 0.15)
    needed = seeds_to_decide(effect, Region(low=0.02), seeds=10)
    shrunk = 0.1 * math.sqrt(10 / needed)
    assert decide(effect, Region(low=0.02)) == UNDECIDED
    assert decide(Estimate(0.05, 0.05 - shrunk, 0.05 + shrunk), Region(low=0.02)) == HOLDS
    assert f"about {needed} seeds" in advice(effect, Region(low=0.02), 10)
    assert "no feasible number" in advice(effect, Region(low=0.0499), 10)
    assert advice(Estimate(0.3, 0.2, 0.4), Region(low=0.02), 10) == ""


def test_if_nothing_was_learned_there_is_no_scale(tmp_path):
    """On robots, the best compared method defines the scale; here both methods got worse."""
    for method, final in (("splagger", -5.0), ("pearl", -10.0)):
        write_run(tmp_path, "walker", method, learning(final))
    test = Beats(Series("walker", "splagger"), (Series("walker", "pearl"),))
    (finding,) = test.evaluate(Evidence.read(tmp_path)).findings
    assert (finding.outcome, finding.note) == (UNDECIDED, "neither is better than untrained")


def test_one_refuted_comparison_suffices_if_others_are_missing(tmp_path):
    found = evidence(tmp_path, rnn=learning(8), cnp=learning(14))
    assert outcome(Beats(RNN, (OTHER, Series("t-ls", "cnp"))), found) == FAILS


def test_diverged_seeds_lower_the_score_of_a_method(tmp_path):
    def diverged(rate, seed):
        return np.where(np.arange(41) > 10, np.nan, learning(16, start=2, speed=40)(rate, seed))

    found = evidence(tmp_path, rnn=learning(16, start=2, speed=40), amrl=diverged)
    assert outcome(Beats(RNN, (OTHER,)), found) == HOLDS
    assert outcome(Fails("t-ls", ("amrl",), 14.6), found) == HOLDS
    some = lambda rate, seed: diverged(rate, seed) if seed == 0 else learning(16, 40, 2)(rate, seed)  # noqa: E731
    found = evidence(tmp_path / "some", amrl=some)
    assert outcome(Learns("t-ls", ("amrl",), 14.6), found) == UNDECIDED


def test_a_finding_says_what_it_would_be_without_the_diverged_agents(tmp_path):
    def fifth_diverges(rate, seed):
        stopped = (seed == 4) & (np.arange(41) > 10)
        return np.where(stopped, np.nan, learning(16, start=2, speed=40, noise=0.01)(rate, seed))

    found = evidence(tmp_path, rnn=learning(14, start=2, speed=40), amrl=fifth_diverges)
    (beats,) = Beats(OTHER, (RNN,)).evaluate(found).findings
    assert beats.outcome == UNDECIDED
    assert re.search(r"without the diverged agents: \+0\.14 \[.*\], holds; about", beats.note)
    (learns,) = Learns("t-ls", ("amrl",), 3.0).evaluate(found).findings
    assert learns.outcome == HOLDS
    assert re.search(r"without the diverged agents: \+16\.\d+ \[[^]]*\]$", learns.note)
    (sooner,) = Sooner(OTHER, (RNN,), 13.0).evaluate(found).findings
    assert "without the diverged agents" in sooner.note
    (unaffected,) = Fails("t-ls", ("rnn",), 14.6).evaluate(found).findings
    assert "diverged" not in unaffected.note


def test_too_few_agents_remain_without_those_that_diverged(tmp_path):
    late = lambda rate, seed: np.where(  # noqa: E731
        (np.arange(41) > 10) & (seed > 1), np.nan, learning(16, start=2, speed=40)(rate, seed)
    )
    (finding,) = Learns("t-ls", ("amrl",), 3.0).evaluate(evidence(tmp_path, amrl=late)).findings
    assert "3 diverged" in finding.note and "without" not in finding.note


def test_levels_are_tested_at_the_end_of_training(tmp_path):
    found = evidence(tmp_path, rnn=learning(16, noise=0.1), amrl=learning(9, noise=0.1))
    assert outcome(Learns("t-ls", ("rnn",), 14.6), found) == HOLDS
    assert outcome(Fails("t-ls", ("rnn",), 14.6), found) == FAILS
    assert outcome(Learns("t-ls", ("rnn", "amrl"), 14.6), found) == FAILS
    assert outcome(Fails("t-ls", ("amrl",), 14.6), found) == HOLDS


def test_sooner_compares_frames_and_counts_seeds_that_never_reach_the_level(tmp_path):
    steps = lambda at: lambda rate, seed: np.where(np.arange(41) < at, 2.0, 16.0)  # noqa: E731
    found = evidence(tmp_path, rnn=steps(8), amrl=steps(16), cnp=steps(9), pearl=steps(99))
    pick = lambda method: (Series("t-ls", method),)  # noqa: E731
    assert outcome(Sooner(RNN, pick("amrl"), 14.6), found) == HOLDS
    assert outcome(Sooner(RNN, pick("cnp"), 14.6), found) == FAILS
    (finding,) = Sooner(RNN, pick("pearl"), 14.6).evaluate(found).findings
    assert finding.effect.value == pytest.approx(math.log2(40 / 11)) and finding.outcome == HOLDS
    assert outcome(Sooner(pick("pearl")[0], pick("amrl"), 14.6), found) == FAILS
    assert "0 and 5 seeds never reach the level" in finding.note


def test_runs_that_were_evaluated_once_do_not_compare_frames(tmp_path):
    found = evidence(tmp_path, rnn=lambda rate, seed: [2.0], amrl=lambda rate, seed: [3.0])
    (finding,) = Sooner(RNN, (Series("t-ls", "amrl"),), 14.6).evaluate(found).findings
    assert (finding.outcome, finding.effect) == (UNDECIDED, None)
    assert finding.note == "only evaluated before training"


def test_seeds_that_never_reach_the_level_neither_confirm_nor_refute(tmp_path):
    steps = lambda at: lambda rate, seed: np.where(np.arange(41) < at, 2.0, 16.0)  # noqa: E731
    found = evidence(tmp_path, rnn=steps(29), pearl=steps(99), cnp=steps(30))
    late = Series("t-ls", "pearl")
    assert outcome(Sooner(RNN, (late,), 14.6), found) == UNDECIDED  # 40/32 is a lower bound
    assert outcome(Sooner(late, (late,), 14.6), found) == UNDECIDED
    some = lambda rate, seed: steps(1 if seed else 99)(rate, seed)  # noqa: E731
    found = evidence(tmp_path / "some", amrl=some, cnp=steps(30))
    slow = Series("t-ls", "cnp")
    assert outcome(Sooner(OTHER, (slow,), 14.6), found) != HOLDS


def test_claims_are_evaluated_on_fresh_seeds(tmp_path):
    write_run(tmp_path, "t-ls", "rnn", learning(16), rates=(1e-3, 3e-4))
    fresh = dict(rates=(1e-3,), seeds=range(10, 20), name="fresh")
    write_run(tmp_path, "t-ls", "rnn", learning(3), **fresh)
    (finding,) = Learns("t-ls", ("rnn",), 14.6).evaluate(Evidence.read(tmp_path)).findings
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
def test_trends_are_classified_correctly(tmp_path, name):
    curve, holding = SHAPES[name]
    write_analysis(tmp_path, *KEY, {"rnn": curve})
    found = Evidence.read(tmp_path / "none", analyses=tmp_path)
    outcomes = {
        kind: outcome(kind(KEY, ("rnn",)), found) for kind in (Decays, Flat, Grows, Persists)
    }
    assert outcomes == {kind: HOLDS if kind in holding else FAILS for kind in outcomes}


@pytest.mark.parametrize("power, expected", [(-1, HOLDS), (-0.5, FAILS), (-1.5, FAILS), (0, FAILS)])
def test_the_exponent_of_t_is_measured(tmp_path, power, expected):
    write_analysis(tmp_path, *KEY, {"pearl": lambda t: (t + 1.0) ** power}, 3, 12)
    found = Evidence.read(tmp_path / "none", analyses=tmp_path)
    (finding,) = LikeOneOverT(KEY, ("pearl",)).evaluate(found).findings
    assert finding.outcome == expected and finding.effect.value == pytest.approx(power)
    assert finding.note == "3 seeds"


def test_dimensions_of_one_agent_are_one_sample(tmp_path):
    write_analysis(tmp_path, *KEY, {"pearl": lambda t: 1 / (t + 1)}, 1, 12)
    found = Evidence.read(tmp_path / "none", analyses=tmp_path)
    for kind in (Decays, LikeOneOverT):
        (finding,) = kind(KEY, ("pearl",)).evaluate(found).findings
        assert (finding.outcome, finding.note) == (UNDECIDED, "fewer than 3 seeds")


def test_orders_are_tested_pair_by_pair(tmp_path):
    levels = {"rnn": 0.5, "splagger": 0.3, "splagger-nornn": 0.0, "amrl": 0.3}
    curves = {method: lambda t, level=level: level for method, level in levels.items()}
    write_analysis(tmp_path, *KEY, curves)
    found = Evidence.read(tmp_path / "none", analyses=tmp_path)
    assert outcome(Ordered(KEY, ("rnn", "splagger", "splagger-nornn")), found) == HOLDS
    assert outcome(Ordered(KEY, ("rnn", "splagger-nornn", "splagger")), found) == FAILS
    assert outcome(Ordered(KEY, ("splagger", "amrl")), found) != HOLDS  # they are equal
    assert outcome(Ordered(KEY, ("rnn", "cnp")), found) == UNDECIDED


def test_without_data_no_claim_has_a_verdict_and_all_give_a_reason():
    results = evaluate_claims(Evidence([]))
    assert len(results) == len(CLAIMS) >= 25
    for claim, verdict in results:
        assert verdict.outcome == UNDECIDED
        assert all(finding.note and finding.effect is None for finding in verdict.findings)
        assert claim.test.words() and claim.test.unit and claim.section and claim.sentence
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


def series_of(test):
    levels = [Series(test.env, m) for m in test.methods] if hasattr(test, "env") else []
    return [*levels, *([test.first, *test.others] if hasattr(test, "first") else [])]


def test_the_protocols_match_the_registry():
    rows = {n: row for n, row in ENVS.items() if not row.small and not row.classic}
    found = {n: (row.episodes, row.frames) for n, row in rows.items()}
    assert found == {name: (p.episodes, p.frames) for name, p in PAPER.items()}


def test_claims_use_only_series_that_figures_show():
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
            assert series.env in ENVS


def test_diverged_agents_give_no_verdict_that_short_runs_do_not_have(tmp_path):
    """The words about the other agents are those for runs of this length, too."""

    def finding(evaluations):
        def failing(rate, seed):
            curve = np.r_[2.0, np.full(evaluations - 1, 15.0)]
            return np.where((np.arange(evaluations) > 0) & (seed == 4), np.nan, curve)

        root = tmp_path / str(evaluations)
        healthy = lambda rate, seed: np.r_[2.0, np.full(evaluations - 1, 9 + 0.01 * seed)]  # noqa: E731
        write_run(root, "t-ls", "rnn", healthy, seeds=range(5))
        write_run(root, "t-ls", "amrl", failing, seeds=range(5))
        test = Beats(Series("t-ls", "amrl"), (Series("t-ls", "rnn"),))
        return test.evaluate(Evidence.read(root)).findings[0]

    very_short, short = finding(2), finding(11)
    assert very_short.outcome == UNDECIDED and "diverged agents: +" in very_short.note
    assert HOLDS not in very_short.note
    assert f"], {HOLDS_SO_FAR}; about" in short.note


def test_the_number_of_seeds_that_would_decide_regards_those_of_both_methods():
    """10 and 4 seeds are as precise as 5.7 of each."""
    effect, region = Estimate(0.0, -0.1, 0.1), Region(low=-0.09)
    assert seeds_to_decide(effect, region, 2 / (1 / 10 + 1 / 4)) == 8
    assert "about 8 seeds each" in advice(effect, region, 2 / (1 / 10 + 1 / 4))
