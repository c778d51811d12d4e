"""Statistics, compared with their definitions in plain loops and with cases of known answers."""

import math
import random
import statistics

import numpy as np
import pytest

from splagger.stats import estimates as stats


def naive_quantile(values, q):
    """Interpolates linearly between the two neighbors in the sorted list."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def naive_bootstrap(statistic, strata, level, draws, picks):
    """Computes the percentile interval; `picks(stratum, draw)` lists the drawn indices."""
    values = []
    for draw in range(draws):
        resampled = [
            [s[index] for index in picks(number, draw)]
            for number, s in enumerate(map(list, strata))
        ]
        values.append(statistic(*resampled))
    return naive_quantile(values, (1 - level) / 2), naive_quantile(values, (1 + level) / 2)


def naive_iqm(values):
    cut = len(values) // 4
    return statistics.fmean(sorted(values)[cut : len(values) - cut])


def naive_improvement(better, worse):
    score = 0.0
    for x in better:
        for y in worse:
            score += 1.0 if x > y else 0.5 if x == y else 0.0
    return score / (len(better) * len(worse))


def naive_difference(better, worse):
    return statistics.fmean(better) - statistics.fmean(worse)


STATISTICS = {
    "iqm": (stats.interquartile_mean, naive_iqm, 1),
    "improvement": (stats.improvement, naive_improvement, 2),
    "difference": (stats.difference, naive_difference, 2),
}


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (10, 3), (7, 9)])
def test_the_stratified_bootstrap_matches_its_definition_draw_by_draw(name, sizes):
    statistic, naive, count = STATISTICS[name]
    strata = [np.random.default_rng(i).normal(i, 2, n) for i, n in enumerate(sizes[:count])]
    generator = np.random.default_rng(stats.SEED)
    drawn = [generator.integers(len(s), size=(300, len(s))) for s in strata]
    low, high = naive_bootstrap(naive, strata, 0.95, 300, lambda s, d: drawn[s][d])
    found = stats.estimate(statistic, *strata, draws=300)
    assert found == pytest.approx((naive(*map(list, strata)), low, high))


@pytest.mark.parametrize("name", STATISTICS)
def test_the_bootstrap_agrees_with_another_generator(name):
    """An implementation that shares neither code nor random numbers finds the same bounds."""
    statistic, naive, count = STATISTICS[name]
    other = random.Random(1)
    strata = [[other.gauss(i, 1) for _ in range(12)] for i in range(count)]
    picks = lambda s, d: [other.randrange(12) for _ in range(12)]  # noqa: E731
    low, high = naive_bootstrap(naive, strata, 0.95, 4000, picks)
    found = stats.estimate(statistic, *map(np.array, strata), draws=4000)
    assert found.low == pytest.approx(low, abs=0.06)
    assert found.high == pytest.approx(high, abs=0.06)


def test_the_interval_of_curves_matches_its_definition_at_every_point():
    curves = np.random.default_rng(3).normal(size=(3, 5))
    picks = np.random.default_rng(stats.SEED).integers(3, size=(1000, 3))
    low, mean, high = stats.bootstrap_interval(curves)
    for t in range(5):
        edges = naive_bootstrap(
            lambda v: statistics.fmean(v), [curves[:, t]], 0.68, 1000, lambda _, d: picks[d]
        )
        expected = (edges[0], statistics.fmean(curves[:, t]), edges[1])
        assert (low[t], mean[t], high[t]) == pytest.approx(expected)


def test_the_band_of_one_seed_is_its_curve():
    low, mean, high = stats.bootstrap_interval(np.array([[1.0, 2.0]]))
    assert low.tolist() == mean.tolist() == high.tolist() == [1.0, 2.0]


def test_the_same_input_gives_the_same_interval():
    values = np.random.default_rng(0).normal(size=9)
    first = stats.estimate(stats.interquartile_mean, values)
    np.random.default_rng().normal(size=5)
    assert stats.estimate(stats.interquartile_mean, values) == first


def test_a_95_percent_interval_covers_the_true_value_about_95_percent_of_the_time():
    """Percentile intervals of 20 values are slightly too short; a large deviation would be a bug."""
    generator, covered = np.random.default_rng(0), 0
    for _ in range(200):
        found = stats.estimate(stats.difference, generator.normal(1, 1, 20), np.zeros(2), draws=300)
        covered += found.low <= 1 <= found.high
    assert 0.88 <= covered / 200 <= 0.98


def test_outliers_do_not_move_the_interquartile_mean():
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    spoiled = np.where(values == 8, 1e9, np.where(values == 1, -1e9, values))
    assert stats.interquartile_mean(spoiled) == stats.interquartile_mean(values) == 4.5


@pytest.mark.parametrize("sizes", [(3, 3), (2, 3, 7), (3, 10, 100)])
def test_strata_of_different_length_weigh_the_same_in_the_interquartile_mean(sizes):
    """The definition: repeat the values of each stratum until all are equally long, a multiple of four."""
    generator = np.random.default_rng(len(sizes))
    strata = [generator.normal(size=size) for size in sizes]
    whole = 4 * math.lcm(*sizes)
    repeated = np.concatenate([np.repeat(s, whole // len(s)) for s in strata])
    expected = float(stats.interquartile_mean(repeated))
    assert float(stats.interquartile_mean_of_strata(*strata)) == pytest.approx(expected)
    draws = [np.stack([s, s[::-1], s + 1]) for s in strata]  # leading axes are resamplings
    np.testing.assert_allclose(
        stats.interquartile_mean_of_strata(*draws), [expected, expected, expected + 1]
    )


def naive_smooth(curve):
    window = max(1, int(0.1 * len(curve)))
    return [
        statistics.fmean(curve[max(0, t - k)] for k in range(window)) for t in range(len(curve))
    ]


@pytest.mark.parametrize("length", [1, 2, 3, 19, 20, 35, 134])
def test_smoothing_is_a_trailing_mean_padded_with_the_first_value(length):
    curve = np.random.default_rng(0).normal(size=length)
    assert np.allclose(stats.smooth(curve), naive_smooth(curve.tolist()))


@pytest.mark.parametrize("length", [1, 6, 19, 20, 134])
def test_a_smoothed_curve_ends_with_the_mean_of_the_last_tenth(length):
    """So that a figure never contradicts a table."""
    curves = np.random.default_rng(1).normal(size=(3, length))
    ends = [stats.smooth(curve)[-1] for curve in curves]
    assert np.allclose(ends, stats.at_the_end(curves))


def test_a_single_sample_has_no_interval():
    found = stats.estimate(stats.interquartile_mean, np.array([3.0]))
    assert found.value == 3.0 and np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize("length", [1, 2, 199, 200, 201, 938])
def test_thinning_keeps_both_ends_and_at_most_200_points(length):
    indices = stats.thin(length)
    assert len(indices) == min(length, 200)
    assert indices[0] == 0 and indices[-1] == length - 1
    assert (np.diff(indices) > 0).all()


@pytest.mark.parametrize("length, last", [(1, 1), (9, 1), (20, 2), (134, 13)])
def test_the_end_of_training_is_its_last_tenth(length, last):
    curves = np.random.default_rng(0).normal(size=(3, length))
    assert np.allclose(stats.at_the_end(curves), curves[:, length - last :].mean(axis=1))


@pytest.mark.parametrize("sizes", [(1, 1), (4, 7), (9, 2)])
def test_the_probability_of_improvement_counts_all_pairs_and_half_of_the_ties(sizes):
    random = np.random.default_rng(1)
    draws = [random.integers(0, 4, size=(5, n)).astype(float) for n in sizes]
    draws[0][0, 0] = draws[1][1, 0] = np.inf
    draws[1][2, 0] = -np.inf
    found = stats.improvement(*draws)
    assert found.tolist() == pytest.approx(
        [naive_improvement(*rows) for rows in zip(*draws, strict=True)]
    )
    assert stats.improvement(draws[0][3], draws[1][3]) == found[3]


def test_the_seed_of_the_bootstrap_decides_nothing(monkeypatch):
    """The ends of an interval move by less than 3% of its width."""
    samples = np.random.default_rng(5).normal(size=(2, 8))
    found = []
    for seed in range(5):
        monkeypatch.setattr(stats, "SEED", seed)
        found.append(stats.estimate(stats.difference, *samples))
    width = found[0].high - found[0].low
    assert np.ptp([[f.low, f.high] for f in found], axis=0).max() < 0.03 * width


def test_one_task_has_the_interquartile_mean_of_its_table():
    """Three seeds are not cut, here and there."""
    values = np.array([5.5, 16.0, 16.0])
    assert stats.interquartile_mean_of_strata(values) == stats.interquartile_mean(values) == 12.5
