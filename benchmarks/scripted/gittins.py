"""Bernoulli bandits in numbers: Gittins indices, and the Bayes-optimal return of small bandits."""

import functools as ft

import numpy as np


@ft.cache
def gittins_indices(pulls: int, levels: int = 200) -> np.ndarray:
    """Returns the finite-horizon Gittins index by [remaining pulls, wins, losses] of an arm with a flat prior.

    The index is the fixed payment λ per pull at which pulling the arm, with the option to stop at any time, is worth
    0. For each of `levels` values of λ, dynamic programming computes that worth,

        W(r, w, l) = max(0, μ - λ + μ W(r-1, w+1, l) + (1-μ) W(r-1, w, l+1)),  μ = (w+1) / (w+l+2),

    and the index is the largest λ for which it is positive: W decreases in λ. An entry is exact to 1 / `levels`.
    Indices are defined for wins + losses + remaining ≤ `pulls`; other entries are 0.
    """
    wins, losses = np.meshgrid(np.arange(pulls + 1), np.arange(pulls + 1), indexing="ij")
    mean = ((wins + 1) / (wins + losses + 2)).astype(np.float32)
    index = np.zeros((pulls + 1, pulls + 1, pulls + 1), np.float32)
    for payment in (np.arange(levels, dtype=np.float32) + 0.5) / levels:
        worth = np.zeros_like(mean)
        for remaining in range(1, pulls + 1):
            # Wins and losses below this have an entry for one pull less.
            size = pulls - remaining + 1
            win, lose = worth[1 : size + 1, :size], worth[:size, 1 : size + 1]
            p = mean[:size, :size]
            worth = np.maximum(0, p - payment + p * win + (1 - p) * lose)
            index[remaining, :size, :size][worth > 0] = payment
    return index


def bayes_optimal_return(arms: int, pulls: int) -> float:
    """Returns the largest expected return of any policy, by dynamic programming over all beliefs.

    Its cost grows as pulls^(2 · arms): for two arms, a hundred pulls; for five, only a few.
    """

    @ft.cache
    def value(counts: tuple[tuple[int, int], ...], remaining: int) -> float:
        if remaining == 0:
            return 0.0
        best = 0.0
        for arm, (wins, losses) in enumerate(counts):
            if (wins, losses) in counts[:arm]:
                continue  # an equal arm was considered
            p = (wins + 1) / (wins + losses + 2)
            others = counts[:arm] + counts[arm + 1 :]
            won = value(tuple(sorted((*others, (wins + 1, losses)))), remaining - 1)
            lost = value(tuple(sorted((*others, (wins, losses + 1)))), remaining - 1)
            best = max(best, p * (1 + won) + (1 - p) * lost)
        return best

    return value(((0, 0),) * arms, pulls)
