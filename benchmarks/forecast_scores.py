"""Scores of probabilistic forecasts: the continuous ranked probability score, and coverage.

CRPS = E|X - y| - ½ E|X - X'| for draws X, X' of the forecast and the value y that came (Gneiting &
Raftery, JASA 102, 2007); of a normal N(m, s²), s (z (2Φ(z) - 1) + 2φ(z) - 1/√π) with z = (y - m)/s.
"""

from __future__ import annotations

import numpy as np

BAND = 0.9


def crps(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """CRPS of draws (n, ...) where the truth (...) came; E|X - X'| is over pairs of draws."""
    n = len(draws)
    ordered = np.sort(draws, 0)
    rank = (2 * np.arange(n) - n + 1).reshape(-1, *[1] * (draws.ndim - 1))
    spread = 2 * (rank * ordered).sum(0) / (n * (n - 1))
    return np.asarray(np.abs(draws - truth).mean(0) - 0.5 * spread)


def covered(draws: np.ndarray, truth: np.ndarray, band: float = BAND) -> np.ndarray:
    """Whether the truth (...) lies within the central band of draws (n, ...)."""
    low, high = np.quantile(draws, [(1 - band) / 2, (1 + band) / 2], axis=0)
    return np.asarray((low <= truth) & (truth <= high))


def random_walk(
    last: np.ndarray, volatility: np.ndarray, steps: int, draws: int, seed: int
) -> np.ndarray:
    """Draws (draws, V, steps) of geometric random walks from the last values (V,).

    `volatility` (V, V): the covariance of the log-returns of a step.
    """
    random = np.random.default_rng(seed)
    returns = random.multivariate_normal(np.zeros(len(last)), volatility, (draws, steps))
    path = np.cumsum(returns, 1)
    return np.asarray(last[:, None] * np.exp(np.swapaxes(path, 1, 2)))
