"""Fit the polynomial Q with erfcx(x) ≈ t Q(t), t = 2.5/(2.5 + x), x >= 0, in `gaussian.averages`.

    python benchmarks/fit_erfcx.py [--check]

Q has degree 8 and Q(1) = 1, so that there is no error at x = 0; its coefficients minimise the
largest relative error on t in (0, 1]. Remez' exchange algorithm: with Q(t) = 1 + (t - 1) P(t), P of
degree 7, the relative error takes its largest size with alternating signs at nine points. It is
solved for P and that size at nine trial points, which then move to where the error is extreme.
With --check the result is compared with the coefficients in use.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.polynomial import Polynomial
from scipy.optimize import minimize_scalar
from scipy.special import erfcx

sys.path.insert(0, str(Path(__file__).parents[1]))

from constraints.gaussian import averages

DEGREE = 8
SCALE = 2.5
GRID = 0.5 * (1 - np.cos(np.linspace(0.02, np.pi, 2001)))[:-1]  # denser towards both ends
CLOSE = 1e-11  # of two polynomials: rounding in double precision


def weight(t: np.ndarray) -> np.ndarray:
    """t / erfcx(x(t)), so that the relative error of Q is weight·Q - 1."""
    return t / erfcx(SCALE / t - SCALE)


def relative_error(q: Polynomial, t: np.ndarray) -> np.ndarray:
    return weight(t) * q(t) - 1


def fit() -> tuple[Polynomial, float]:
    """Q and its largest relative error."""
    points = 0.5 * (1 - np.cos(np.pi * (np.arange(DEGREE + 1) + 0.3) / (DEGREE + 1)))
    while True:
        powers = weight(points)[:, None] * (points - 1)[:, None] * points[:, None] ** range(DEGREE)
        signs = (-1.0) ** np.arange(DEGREE + 1)
        *p, size = np.linalg.solve(np.column_stack([powers, signs]), 1 - weight(points))
        q = 1 + Polynomial([-1, 1]) * Polynomial(p)
        points = extremes(q)
        largest = float(np.abs(relative_error(q, points)).max())
        if largest <= abs(size) * (1 + 1e-6):
            return q, largest


def extremes(q: Polynomial) -> np.ndarray:
    """Where the error is extreme between its changes of sign, (DEGREE + 1,)."""
    errors = relative_error(q, GRID)
    stretches = np.split(np.arange(len(GRID)), np.flatnonzero(np.diff(np.sign(errors))) + 1)
    found = []
    for stretch in stretches:
        at = stretch[np.abs(errors[stretch]).argmax()]
        ends = GRID[max(at - 1, 0)], GRID[min(at + 1, len(GRID) - 1)]
        best = minimize_scalar(
            lambda t: -abs(relative_error(q, np.asarray(t))), bounds=ends, method="bounded"
        )
        found.append(best.x)
    return np.array(found)


def distance_from_shipped(q: Polynomial) -> float:
    """The largest difference of the two polynomials on [0, 1]."""
    t = np.linspace(0, 1, 1001)
    return float(np.abs(q(t) - Polynomial(averages.Q)(t)).max())


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the polynomial for erfcx.")
    parser.add_argument("--check", action="store_true", help="fail unless it is the one in use")
    check = parser.parse_args().check
    q, size = fit()
    for coefficient in q.coef:
        print(f"{coefficient:.14f}")
    print(f"largest relative error {size:.4e}")
    if check and distance_from_shipped(q) > CLOSE:
        sys.exit(f"constraints.gaussian.averages differs by {distance_from_shipped(q):.1e}")


if __name__ == "__main__":
    main()
