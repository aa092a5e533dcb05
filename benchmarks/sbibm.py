"""Tasks of simulation-based inference: priors, simulators, reference posteriors and C2ST.

Lueckmann et al. 2021, "Benchmarking simulation-based inference" (arXiv:2101.04653).
Observations and reference posteriors are read from a folder TASK/NUMBER/, as the package sbibm has
them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neural_network import MLPClassifier

Simulator = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
MAX_ITERATIONS = 1_000  # of the classifier; sbibm's 10,000 are never needed
FOLDS = 5


class Task(NamedTuple):
    """`simulate`: parameters (n, P) and data (n, D); `wanted`: C2ST at 1e3, 1e4 and 1e5 rows."""

    simulate: Simulator
    wanted: tuple[float, float, float]


def two_moons(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    theta = random.uniform(-1, 1, (count, 2))
    a, r = random.uniform(-np.pi / 2, np.pi / 2, count), random.normal(0.1, 0.01, count)
    total, difference = theta.sum(1), theta[:, 1] - theta[:, 0]
    x = r * np.cos(a) + 0.25 - np.abs(total) / 2**0.5
    return theta, np.stack([x, r * np.sin(a) + difference / 2**0.5], 1)


def sir(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Deterministic SIR, ten days of 1,000 tests; Runge–Kutta with steps of a tenth of a day."""
    beta = random.lognormal(np.log(0.4), 0.5, count)
    gamma = random.lognormal(np.log(0.125), 0.2, count)
    size, h, seen = 1e6, 0.1, list[np.ndarray]()
    state = np.stack([np.full(count, size - 1), np.ones(count)])

    def change(y: np.ndarray) -> np.ndarray:
        infected = beta * y[0] * y[1] / size
        return np.stack([-infected, infected - gamma * y[1]])

    for step in range(1531):
        if step % 170 == 0:
            seen.append(state[1] / size)
        k1 = change(state)
        k2 = change(state + h / 2 * k1)
        k3 = change(state + h / 2 * k2)
        k4 = change(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    share = np.clip(np.stack(seen, 1), 0, 1)
    return np.stack([beta, gamma], 1), random.binomial(1000, share).astype(np.float64)


def gaussian_linear(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    theta = random.normal(0, 0.1**0.5, (count, 10))
    return theta, theta + random.normal(0, 0.1**0.5, (count, 10))


def gaussian_mixture(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    theta = random.uniform(-10, 10, (count, 2))
    sd = np.where(random.uniform(size=(count, 1)) < 0.5, 1.0, 0.1)
    return theta, theta + sd * random.normal(size=(count, 2))


def slcp(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Simple likelihood, complex posterior: four points of a Gaussian in the plane."""
    theta = random.uniform(-3, 3, (count, 5))
    s1, s2, rho = theta[:, 2] ** 2, theta[:, 3] ** 2, np.tanh(theta[:, 4])
    a, b = random.normal(size=(2, count, 4))
    first = theta[:, :1] + s1[:, None] * a
    second = theta[:, 1:2] + s2[:, None] * (rho[:, None] * a + np.sqrt(1 - rho**2)[:, None] * b)
    return theta, np.stack([first, second], 2).reshape(count, 8)


TASKS = {
    "two_moons": Task(two_moons, (0.64, 0.55, 0.53)),
    "sir": Task(sir, (0.65, 0.57, 0.55)),
    "gaussian_linear": Task(gaussian_linear, (0.62, 0.54, 0.51)),
    "gaussian_mixture": Task(gaussian_mixture, (0.68, 0.56, 0.53)),
    "slcp": Task(slcp, (1.0, 1.0, 1.0)),  # held back: no target
}


def table(name: str, rows: int, seed: int) -> pd.DataFrame:
    """Columns x1, x2, ... of data and theta1, theta2, ... of parameters."""
    theta, x = TASKS[name].simulate(rows, np.random.default_rng(seed))
    names = [f"x{i + 1}" for i in range(x.shape[1])]
    names += [f"theta{i + 1}" for i in range(theta.shape[1])]
    return pd.DataFrame(np.concatenate([x, theta], 1), columns=names)


def observed(folder: Path, name: str, number: int) -> tuple[dict[str, float], np.ndarray]:
    """An observation by column, and samples of its reference posterior (10,000, P)."""
    place = folder / name / str(number)
    found = pd.read_csv(place / "observation.csv").to_numpy(float)[0]
    samples = pd.read_csv(place / "reference_posterior_samples.csv.bz2").to_numpy(float)
    return {f"x{i + 1}": float(value) for i, value in enumerate(found)}, samples


def c2st(reference: np.ndarray, samples: np.ndarray, seed: int = 1) -> float:
    """The accuracy of a classifier that tells samples (n, P) from as many of the reference: a
    perceptron of two layers of 10 P, five folds, z-scored by the reference."""
    count, size = min(len(reference), len(samples)), reference.shape[1]
    both = np.concatenate([reference[:count], samples[:count]])
    both = (both - reference[:count].mean(0)) / reference[:count].std(0)
    classes = np.repeat([0, 1], count)
    made = MLPClassifier((10 * size, 10 * size), max_iter=MAX_ITERATIONS, random_state=seed)
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    return float(cross_val_score(made, both, classes, cv=folds, scoring="accuracy").mean())


def half_posterior(seen: dict[str, float], count: int, seed: int) -> np.ndarray:
    """Exact posterior samples (count, 10) of the Gaussian linear task, where some of x is seen."""
    random = np.random.default_rng(seed)
    made = random.normal(0, 0.1**0.5, (count, 10))
    for name, value in seen.items():
        j = int(name[1:]) - 1
        made[:, j] = random.normal(value / 2, 0.05**0.5, count)
    return made
