"""From runs to curves: which rate, what mean, how sure."""

import numpy as np


def bootstrap_interval(
    curves: np.ndarray, level: float = 0.68, draws: int = 1000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """[S, T] curves → (low, mean, high), each [T]; seeds resampled with replacement, as in the paper.

    >>> low, mean, high = bootstrap_interval(np.array([[1.0, 2.0], [3.0, 2.0]]))
    >>> mean.tolist(), float(high[1] - low[1])
    ([2.0, 2.0], 0.0)
    """
    picks = np.random.default_rng(seed).integers(len(curves), size=(draws, len(curves)))
    edges = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(curves[picks].mean(axis=1), edges, axis=0)
    return low, curves.mean(axis=0), high


def smooth(curve: np.ndarray, fraction: float = 0.1) -> np.ndarray:
    """Trailing mean over a tenth of the points, at least two; the start is padded with its first value.

    >>> smooth(np.array([0.0, 2.0, 4.0])).tolist()
    [0.0, 1.0, 3.0]
    """
    window = max(2, int(fraction * len(curve)))
    padded = np.concatenate([np.full(window - 1, curve[0]), curve])
    return np.convolve(padded, np.full(window, 1 / window), mode="valid")
