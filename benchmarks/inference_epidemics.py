"""Posteriors of a learned parameter beside exact ones, for `inference.py`.

rate    eSIRS with beta ~ U(1, 4), six counts seen, half of each or all: the posterior of beta of a
        model trained here (`--models`) against the master equation's on a grid over beta
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
import scipy.stats
from report import Target

import surrogate as sg
from constraints import parse
from simulators import MasterEquation, models, simulate
from simulators.exact.conditions import Likelihood
from surrogate.evaluation.boosting import Features, two_sample_test
from surrogate.guidance.sampler import sample

SEED, TRUTH_SEED = 100, 777_003
RATES = 1.0, 4.0  # the prior of beta
GRID = 31
STEPS = (4, 8, 12, 16, 20, 24)
SHARE = 0.5  # of the infected that are seen, where the counts are noisy


def grid_posterior(seen: dict[int, int], noisy: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """Rates on a grid, their posterior probabilities, and the log evidence."""
    rates = np.linspace(*RATES, GRID)
    log_p = []
    for rate in rates:
        exact = MasterEquation(models.esirs(), parameters={"beta": float(rate)})
        given = {
            t: Likelihood(partial(_binomial, y)) if noisy else f"I = {y}" for t, y in seen.items()
        }
        log_p.append(exact.log_probability(given))
    weights = np.exp(np.asarray(log_p) - max(log_p))
    weights[[0, -1]] /= 2  # the trapezoidal rule
    mean = weights.sum() / (GRID - 1)
    return rates, weights / weights.sum(), float(max(log_p) + np.log(mean))


def rate(options: argparse.Namespace) -> list[Target]:
    """The posterior of beta given noisy and exact counts."""
    folder = Path(options.models or "models") / "esirs_beta"
    if not folder.exists():
        command = f"surrogate train --simulate esirs --param beta=1..4 -o {folder}"
        print(f"rate: there is no model; {command}", file=sys.stderr)
        return []
    model = sg.load(str(folder))
    truth = simulate(models.esirs(), 1, seed=TRUTH_SEED, parameters={"beta": 2.5})
    infected = truth.I.values[0]
    random = np.random.default_rng(TRUTH_SEED)
    found = []
    for noisy in (True, False):
        seen = {
            t: int(random.binomial(infected[t], SHARE) if noisy else infected[t]) for t in STEPS
        }
        text = " and ".join(
            f"{y} ~ binomial(I({t}), {SHARE})" if noisy else f"I({t}) = {y}"
            for t, y in seen.items()
        )
        made = sample(model, options.samples, parse(text), seed=SEED)
        rates, weights, log_z = grid_posterior(seen, noisy)
        mean = float(weights @ rates)
        sd = float(np.sqrt(weights @ (rates - mean) ** 2))
        own = made.dataset.beta.values
        name = "noisy" if noisy else "exact"
        off = abs(float(own.mean()) - mean) / sd
        ratio = abs(float(own.std()) / sd - 1)
        log_p = made.diagnostics.log_probability
        gap = None if log_p is None else abs(log_p - log_z)
        exact = drawn(rates, weights, len(own))
        sides = Features((own[:, None], exact[:, None]), (False,))
        c2st, _ = two_sample_test(sides, np.ones(len(own)), np.ones(len(exact)))
        about = f"beta, {name} counts"
        found += [
            Target(f"{about}: mean off by", off, 0.05, at_most=True, unit=" sd"),
            Target(f"{about}: sd off by a share of", ratio, 0.05, at_most=True),
            Target(f"{about}: C2ST", c2st, 0.55, at_most=True),
            Target(f"{about}: log evidence off by", gap, 0.1, at_most=True),
        ]
    return found


def drawn(rates: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """Draws of the posterior whose density is linear between the rates of a grid."""
    random = np.random.default_rng(TRUTH_SEED)
    ends = np.concatenate([[0.0], np.cumsum((weights[1:] + weights[:-1]) / 2)])
    return np.interp(random.uniform(0, ends[-1], count), ends, rates)


def _binomial(y: int, values: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(scipy.stats.binom.pmf(y, values["I"], SHARE))
